"""Gradients of stencils that are written with loops in a work item, and with extents that are numbers of the source: additions
are gathered, and gradients are exact differences of polynomials of low degree in multiples of powers of 2."""

import os

import numpy as np
import pytest

import costate as ti
from written import load

ARCH = getattr(ti, os.environ.get("COSTATE_DEVICE") or "cpu")
N = 24

#: Loops over elements of which each has its own, and over neighbours.
LOOPS = {
    "rows": """
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            w[i, j] = u[i - 1, j] * u[i, j] + u[i + 1, j] + a[i, j] * u[i, j - 1]""",
    "rows in place": """
    for i in range(n):
        for j in range(n):
            w[i, j] += u[max(i - 1, 0), j] * a[i, j]""",
    "rows of different lengths": """
    for i in range(1, n - 1):
        for j in range(1, n - 1 - i % 3):
            w[i, j] = u[i - 1, j] * u[i, j + 1]""",
    "rows that depend on the element before": """
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            w[i, j] = u[i, j] + 0.5 * w[i, j - 1]""",
    "window": """
    for i, j in ti.ndrange((1, n - 1), (1, n - 1)):
        s = 0.0
        for b in range(-1, 2):
            for c in range(-1, 2):
                s += u[i + b, j + c] * a[i, j]
        w[i, j] = s""",
    "window from the index on": """
    for i, j in ti.ndrange((2, n - 1), (1, n - 1)):
        s = 0.0
        for b in range(i - 2, i + 1, 1):
            s += u[b, j] * u[i, j]
        w[i, j] = s""",
    "window of one loop": """
    for i, j in ti.ndrange((1, n - 1), (1, n - 1)):
        s = 0.0
        for b, c in ti.ndrange(3, 2):
            if b != c:
                s += (b + 2 * c) * u[i + b - 1, j + c - 1] * a[b, c]
        w[i, j] = s""",
    "periodic window": """
    for i, j in u:
        s = 0.0
        for b in range(-1, 2):
            s += u[(i + b) % n, j] * u[i, (j + 2 * b) % n]
        w[i, j] = s""",
    "borders that are chosen by value": """
    for i, j in u:
        left = u[i - 1, j] if i > 0 else u[n - 1, j]
        below = u[i, j - 1] if j > 0 else u[i, j]
        right = 0.0
        if i < n - 1:
            right = u[i + 1, j]
        else:
            right = u[0, j]
        w[i, j] = left * u[i, j] + right * a[i, j] + below""",
    "values that are chosen by data": """
    for i, j in u:
        w[i, j] = (u[i, j] if a[i, j] > 0.1 else u[n - 1 - i, j]) * (u[i, j] if a[i, j] > 0.3 else a[i, 0])""",
    "many weights": """
    for i, j in ti.ndrange((2, n - 2), (2, n - 2)):
        s = 0.0
        for b in range(5):
            for c in range(5):
                s += a[b, c] * u[i + b - 2, j + c - 2]
        w[i, j] = s""",
    "window backwards, left early": """
    for i, j in ti.ndrange((2, n - 2), n):
        s = 0.0
        for b in range(2, -3, -1):
            if s < 4.0:
                s += u[i + b, j]
        w[i, j] = s * a[i, j]""",
}
HELPER = """
@ti.func
def at(u: ti.template(), i, j):
    if i < 0 or i >= u.shape[0]:
        return 0.0
    elif j >= u.shape[1]:
        return u[i, 0]
    return u[i, j]
"""
LOOPS["helper that returns early"] = """
    for i, j in u:
        w[i, j] = at(u, i + 1, j) * u[i, j] + at(u, i - 1, j + 1) * a[i, j]"""
#: Borders of arrays whose extent is N; larger ones work too.
BORDERS = {
    "remainder": "w[i, j] = u[(i + 1) % N, j] * u[i, j] + u[(i - 1 + N) % N, j] + u[i, (j + 2) % N] * a[i, j] + u[i, (j - 1) % N]",
    "clamped": "w[i, j] = u[min(i + 1, N - 1), j] * u[i, j] + u[max(i - 2, 0), j] + u[i, min(j + 2, N - 1)] * a[i, j]",
    "one-sided": "w[i, j] = (u[i + 1, j] if i < N - 1 else u[i, j]) * a[i, j] + (u[i, j - 1] if j > 0 else u[i, N - 1])",
}


def kernel(path, source):
    array = "ti.types.ndarray(ti.f64, 2)"
    return load(path, f"import costate as ti\n\nN = {N}\n{HELPER}\n@ti.kernel\ndef step(u: {array}, a: {array}, w: {array}):\n    n = u.shape[0]\n{source}\n").step


def check(path, source, side, **options):
    """Along a direction; returns the gradients."""
    ti.init(arch=ARCH, default_fp=ti.f64, **options)
    step, numbers = kernel(path, source), np.random.default_rng(side)
    arrays = [ti.ndarray(ti.f64, (side, side), needs_grad=True) for _ in range(3)]
    values, ways = ([numbers.integers(-3, 4, (side, side)) / 4 for _ in range(3)] for _ in range(2))
    seed = numbers.integers(-2, 3, (side, side)) / 2

    def result(scale):
        for array, value, way in zip(arrays, values, ways):
            array.from_numpy(value + scale * way)
        step(*arrays)
        return (seed * arrays[2].to_numpy()).sum()

    slope = (result(1 / 64) - result(-1 / 64)) * 32
    result(0)
    for array, value in zip(arrays, values):
        array.from_numpy(value)
        array.grad.fill(0.0)
    with ti.ad.Tape():
        step(*arrays)
        arrays[2].grad.from_numpy(seed)
    found = [array.grad.to_numpy() for array in arrays]
    assert sum((one * way).sum() for one, way in zip(found, ways)) == pytest.approx(slope, rel=1e-9, abs=1e-9)
    return found, step, arrays


@pytest.mark.parametrize("side", [6, 41])
@pytest.mark.parametrize("name", LOOPS)
def test_loops(tmp_path, name, side):
    found = [check(tmp_path / "loops.py", LOOPS[name], side, **options)[0] for options in ({}, {"debug": True}, {"cpu_max_num_threads": 1})]
    for other in found[1:]:
        assert all(np.array_equal(one, two) for one, two in zip(found[0], other))


@pytest.mark.parametrize("side", [N, N + 1, N + 2, N + 3, 2 * N - 1, 2 * N + 5])
@pytest.mark.parametrize("name", BORDERS)
def test_extents_that_are_numbers(tmp_path, name, side):
    source = f"    for i, j in {'ti.ndrange(N, N)' if name == 'one-sided' else 'u'}:\n        {BORDERS[name]}"
    found = [check(tmp_path / "borders.py", source, side, **options)[0] for options in ({}, {"debug": True}, {"cpu_max_num_threads": 1})]
    for other in found[1:]:
        assert all(np.array_equal(one, two) for one, two in zip(found[0], other))


@pytest.mark.skipif(ARCH != ti.cpu, reason="CPUs have ranges in the report")
@pytest.mark.parametrize("name, source", [*((name, LOOPS[name]) for name in ("rows", "window", "window of one loop", "periodic window", "many weights", "borders that are chosen by value", "helper that returns early")),
                                          ("remainder", "    for i, j in u:\n        " + BORDERS["remainder"])])
def test_report_says_that_additions_are_gathered(tmp_path, name, source):
    _, step, arrays = check(tmp_path / "stencil.py", source, 41)
    assert "as lanes; additions: gathered" in step.report(*arrays)


@pytest.mark.skipif(ARCH != ti.cpu, reason="order of additions")
def test_elements_of_other_times_are_others(tmp_path):
    """With `deterministic` too: a step adds to what it does not use."""
    ti.init(arch=ARCH, default_fp=ti.f64, deterministic=True)
    u = ti.field(ti.f64, (3, 16), needs_grad=True)

    @ti.kernel
    def step(t: int):
        for i in range(1, 15):
            u[t + 1, i] = u[t, i - 1] + 2 * u[t, i + 1] * u[t, i]

    u.from_numpy(np.arange(48).reshape(3, 16) / 8)
    step(0)
    u.grad.fill(0.0)
    u.grad[1, 5] = 1.0
    step.grad(0)
    assert u.grad.to_numpy()[0].tolist() == [0] * 4 + [1, 1.5, 1.25] + [0] * 9


#: The slices that a step reads and writes, of four; whether they are known to be different ones.
SLICES = {"1 - c": ("c", "1 - c", True), "t % 2": ("c % 2", "(c + 1) % 2", True), "t % 4": ("c % 4", "(c + 2) % 4", True),
          "2 * t": ("2 * c", "2 * c + 1", True), "ti.select": ("ti.select(c == 0, 1, 3)", "c % 2 * 2", True), "t % 3": ("c % 3", "(c + 1) % 3", False)}


@pytest.mark.parametrize("c", [0, 1])
@pytest.mark.parametrize("name", SLICES)
def test_slices_that_alternate(tmp_path, name, c):
    read, write, is_known = SLICES[name]
    ti.init(arch=ARCH, default_fp=ti.f64)
    module = load(tmp_path / "slices.py", f"""
import costate as ti

@ti.kernel
def step(u: ti.types.ndarray(ti.f64, 2), c: int):
    for i in range(1, u.shape[1] - 1):
        u[{write}, i] = u[{read}, i - 1] * u[{read}, i] + u[{read}, i + 1]
""")
    u = ti.ndarray(ti.f64, (4, 40), needs_grad=True)
    numbers = np.random.default_rng(c)
    value, way = numbers.integers(-3, 4, (2, 4, 40)) / 4
    seed = numbers.integers(-2, 3, (4, 40)) / 2

    def result(scale):
        u.from_numpy(value + scale * way)
        module.step(u, c)
        return (seed * u.to_numpy()).sum()

    slope = (result(1 / 64) - result(-1 / 64)) * 32
    result(0)
    u.grad.from_numpy(seed)
    module.step.grad(u, c)
    assert (u.grad.to_numpy() * way).sum() == slope
    if ARCH == ti.cpu:
        report = module.step.report(u, c)
        assert ("gathered" in report and "check of memory" not in report) == is_known


#: Indices in pieces with gaps between them, the longest at the start, in the middle or at the end.
PIECES = ["i + 4 if i < 12 else (i + 40 if i < 24 else i + 80)", "i if i < 10 else (i + 100 if i < 20 else i + 200)",
          "i if i < 2 else (i + 20 if i < 18 else i + 40)", "i + 60 if i < 20 else (i if i < 40 else i + 20)"]


@pytest.mark.parametrize("bound", ["n", "{n}"])
@pytest.mark.parametrize("piece", PIECES)
def test_indices_in_pieces(tmp_path, piece, bound):
    ti.init(arch=ARCH, default_fp=ti.f64)
    for n in (1, 2, 5, 12, 18, 19, 24, 30, 60, 100):
        module = load(tmp_path / f"pieces{n}.py", f"""
import costate as ti

@ti.kernel
def step(u: ti.types.ndarray(ti.f64, 1), w: ti.types.ndarray(ti.f64, 1), n: int):
    for i in range({bound.format(n=n)}):
        k = {piece}
        w[i] = u[k]
""")
        u, w = (ti.ndarray(ti.f64, 320, needs_grad=True) for _ in range(2))
        seed = np.random.default_rng(n).integers(-3, 4, 320) / 4
        w.grad.from_numpy(seed)
        module.step.grad(u, w, n)
        expected = np.zeros(320)
        for i in range(n):
            expected[eval(piece)] += seed[i]
        assert u.grad.to_numpy().tolist() == expected.tolist(), f"n = {n}"


@pytest.mark.parametrize("first", ["(j + 1) % u.shape[1]", "(j + 1) % n", "min(j + 1, u.shape[1] - 1)", "(j + 1) % 40", "min(j + 1, 39)",
                                   "j + 1 if j < u.shape[1] - 1 else 0"])
@pytest.mark.parametrize("bound", ["m", "31"])
def test_fewer_work_items_than_elements(tmp_path, first, bound):
    """Adjoints of results that no work item writes are not asked."""
    ti.init(arch=ARCH, default_fp=ti.f64)
    array = "ti.types.ndarray(ti.f64, 2)"
    module = load(tmp_path / "fewer.py", f"""
import costate as ti

@ti.kernel
def step(u: {array}, w: {array}, n: int, m: int):
    for i, j in ti.ndrange({bound}, {bound}):
        w[i, j] = u[i, {first}] + u[i, j + 2]
""")
    for m in (31,) if bound == "31" else (3, 8, 20, 31, 36):
        for n, k in ((44, m), (max(m + 2, 40), m + 1), (90, m + 5)):
            u, w = (ti.ndarray(ti.f64, shape, needs_grad=True) for shape in ((n, n), (k, k)))
            seed = np.arange(1, k * k + 1).reshape(k, k).astype(float)
            w.grad.from_numpy(seed)
            module.step.grad(u, w, n, m)
            expected = np.zeros((n, n))
            for j in range(m):
                expected[:m, eval(first, {"j": j, "u": u, "n": n, "min": min})] += seed[:m, j]
                expected[:m, j + 2] += seed[:m, j]
            assert u.grad.to_numpy().tolist() == expected.tolist(), f"{m} of {n}"
