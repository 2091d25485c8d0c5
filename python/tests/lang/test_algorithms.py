"""`ti.algorithms` in kernels: reductions, scans, selection, sums by key, sorting, against NumPy."""

import numpy as np
import pytest

import costate as ti
from costate import algorithms as alg

SIZES = [0, 1, 2, 255, 256, 257, 1000]
DTYPES = [ti.i32, ti.u32, ti.f32, ti.i64, ti.u64, ti.f64]


def _array(values, make=ti.ndarray):
    dtype = {x.np: x for x in DTYPES}[values.dtype]
    made = make(dtype, (max(1, len(values)),))
    if len(values):
        made.from_numpy(values)
    return made


def _numbers(n, dtype, seed=1):
    rng = np.random.default_rng(seed)
    return rng.integers(0 if dtype.kind == "u" else -50, 50, n).astype(dtype.np)


def _scratch(slots, dtype=ti.u32):
    made = ti.ndarray(ti.u64 if dtype.bits == 64 else ti.u32, slots)
    made.fill(12345)
    return made


def _extreme(dtype, sign):
    return sign * np.inf if dtype.is_float else (np.iinfo(dtype.np).max if sign > 0 else np.iinfo(dtype.np).min)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name, whole, sign", [("add", np.sum, 0), ("min", np.min, 1), ("max", np.max, -1)])
def test_reductions_and_scans(dtype, name, whole, sign):
    start = _extreme(dtype, sign) if sign else 0
    scan, reduction = getattr(alg, f"exclusive_scan_{name}"), getattr(alg, f"reduce_{name}")

    @ti.kernel
    def run(a: ti.types.ndarray(), o: ti.types.ndarray(), r: ti.types.ndarray(), s: ti.types.ndarray(), m: ti.i32):
        scan(a, o, s, m, dtype, 2)
        reduction(a, r, s, m, dtype, 2)

    for n in SIZES:
        values = _numbers(n, dtype)
        out, all_ = ti.ndarray(dtype, max(1, n)), ti.ndarray(dtype, 1)
        run(_array(values), out, all_, _scratch(alg.exclusive_scan_scratch_slots(n, 2), dtype), n)
        wanted = [start] + [whole(values[:k]) for k in range(1, n)]
        assert (out.to_numpy()[:n] == np.array(wanted[:n]).astype(dtype.np)).all()
        assert all_[0] == (dtype.np.type(whole(values)) if n else dtype.np.type(start))


def test_selection():
    @ti.kernel
    def run(a: ti.types.ndarray(), f: ti.types.ndarray(), o: ti.types.ndarray(), c: ti.types.ndarray(),
            s: ti.types.ndarray(), m: ti.i32):
        alg.select(a, f, o, c, s, m, 2)

    for n in SIZES:
        values, flags = _numbers(n, ti.f32), (np.arange(n) % 3 == 1).astype(np.int32)
        out, count = ti.ndarray(ti.f32, max(1, n)), ti.ndarray(ti.i32, 1)
        run(_array(values), _array(flags), out, count, _scratch(alg.select_scratch_slots(n)), n)
        assert count[0] == flags.sum() and (out.to_numpy()[:count[0]] == values[flags == 1]).all()


@pytest.mark.parametrize("make", [ti.ndarray, ti.field])
def test_sums_by_key(make):
    @ti.kernel
    def run(k: ti.Tensor, v: ti.Tensor, ko: ti.Tensor, vo: ti.Tensor, c: ti.Tensor, s: ti.types.ndarray(), m: ti.i32):
        alg.reduce_by_key_add(k, v, ko, vo, c, s, m, ti.i64, 2)

    for n in SIZES if make is ti.ndarray else [257]:
        rng = np.random.default_rng(2)
        keys, values = np.sort(rng.integers(0, 9, n)).astype(np.int32), rng.integers(0, 9, n).astype(np.int64)
        keys_out, sums, runs = make(ti.i32, (max(1, n),)), make(ti.i64, (max(1, n),)), make(ti.i32, (1,))
        run(_array(keys, make), _array(values, make), keys_out, sums, runs, _scratch(alg.reduce_by_key_scratch_slots(n)), n)
        wanted = np.unique(keys)
        assert runs[0] == len(wanted) and (keys_out.to_numpy()[:runs[0]] == wanted).all()
        assert sums.to_numpy()[:runs[0]].tolist() == [values[keys == one].sum() for one in wanted]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sorting(dtype):
    @ti.kernel
    def run(k: ti.types.ndarray(), t: ti.types.ndarray(), v: ti.types.ndarray(), w: ti.types.ndarray(),
            s: ti.types.ndarray(), m: ti.types.ndarray()):
        alg.sort(k, t, v, w, s, m, dtype, True, dtype.bits, 2)

    for n in SIZES:
        keys = _numbers(n, dtype)
        if dtype.is_float and n > 5:
            keys[:5] = [np.inf, -np.inf, 0.5, -0.25, 1e30]
        if not dtype.is_float and n > 1:
            keys[:2] = [np.iinfo(dtype.np).max, np.iinfo(dtype.np).min]
        k, values, count = _array(keys), _array(np.arange(n, dtype=np.int32)), ti.ndarray(ti.i32, ())
        count.fill(n)
        tmp, tmp_values = ti.ndarray(dtype, max(1, n)), ti.ndarray(ti.i32, max(1, n))
        run(k, tmp, values, tmp_values, _scratch(alg.sort_scratch_slots(n, 2)), count)
        order = np.argsort(keys, kind="stable")
        assert (k.to_numpy()[:n] == keys[order]).all() and (values.to_numpy()[:n] == order).all()


def test_what_is_refused():
    with pytest.raises(ValueError, match="log256_max_n=5"):
        alg.reduce_scratch_slots(10, 5)

    @ti.kernel
    def wrong(a: ti.types.ndarray()):
        alg.sort(a, a, a, a, a, a, ti.i32, False, 24, 1)

    @ti.kernel
    def narrow(a: ti.types.ndarray()):
        alg.reduce_add(a, a, a, 4, ti.i8, 1)

    for kernel, text in ((wrong, "multiple of 16 up to 32, not 24"), (narrow, "numbers of 4 or 8 bytes, not i8")):
        with pytest.raises(ti.QuadrantsCompilationError, match=text):
            kernel(ti.ndarray(ti.i32, 4))
