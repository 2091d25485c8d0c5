"""Which commands make the tables of docs/performance.md, and what stands in their cells."""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Table:
    measured: str  # one of MEASUREMENTS
    command: str  # as the page names it
    head: list
    rows: Callable  # the rows of cells, of the numbers that are kept


# -- Cells --------------------------------------------------------------------

def short(value, digits=3):
    """Nothing where nothing was measured."""
    if value is None:
        return ""
    return f"{value:.{digits}g}" if abs(value) < 10 ** digits else f"{value:.0f}"


def ratio(a, b):
    return f"{a / b:.2f}" if a and b else ""


def megabytes(value):
    return "" if value is None else "0" if value < 5e4 else short(value / 1e6, 2 if value < 1e8 else 3)


def joined(*values):
    return " / ".join(short(value) for value in values) if any(value is not None for value in values) else ""


def microseconds(value):
    return None if value is None else 1e3 * value


# -- Stencils -----------------------------------------------------------------

BORDERS = ("inside", "static", "inside-if", "one-sided", "zero", "clamped", "periodic", "python", "choice", "reflected", "channel")
BODIES = [f"{dims}d-{kind}-{body}" for dims in (2, 3) for kind in ("f32", "f64") for body in ("", "cubic-")]


def spellings(n):
    return [[border, *(over_primal(n, body + border) for body in BODIES)] for border in BORDERS]


def instructions(n):
    counts = ("kernel", "gradient", "products", "sums", "guards", "moves", "prefetches", "others")
    return [[f"{dims} D", *(short(n(count, f"{dims}d-f32-cubic-inside")) for count in counts)] for dims in (2, 3)]


def kinds(n):
    """A row for each body, a cell for each of four borders."""
    for dims in (2, 3):
        for type in ("f32", "f64"):
            for cubic in ("", "-cubic"):
                cases = [f"{dims}d-{type}{cubic}-{border}" for border in ("inside", "condition", "clamped", "periodic")]
                for label, vectors in ((None, "AVX-512"), ("AVX2", "AVX2")):
                    yield [f"{dims} D, {type}{', cube' if cubic else ''}", vectors, *(over_primal(n, case, label=label) for case in cases)]


def over_primal(n, case, **where):
    """`0.08 / 0.24 (3.0)`: of the kernel and of its gradient."""
    primal, gradient = n("primal_ms", case, **where), n("gradient_ms", case, **where)
    return f"{joined(primal, gradient)} ({gradient / primal:.1f})" if primal and gradient else ""


# -- GPUs ---------------------------------------------------------------------

def tapes(n):
    def of(bench, case, title):
        where = {"bench": bench, "case": case}
        ours, best = n("graph_ms", **where), n("best_ms", label="by hand", **where)
        in_order = n("best_ms", bench=bench, case=case + "-sorted", label="by hand")
        return [title, short(ours), short(best), ratio(ours, best), short(in_order), ratio(ours, in_order), megabytes(n("heap_bytes", **where)),
                megabytes(n("heap_bytes", label="by hand", **where)), short(n("pair_ms", label="by hand", **where))]
    for body in ("fast", "accurate"):
        for iterations in (64, 256, 1024):
            yield of("tape-uniform", f"{iterations}-{body}", f"uniform {iterations}, {body}")
        for bench, name in (("tape-ragged", "exponential"), ("tape-ragged", "rare"), ("tape-nest", "nest"), ("tape-while", "while")):
            yield of(bench, f"{name}-{body}", f"{name}, {body}")


SIZES = {65536: "65,536", 1 << 20: "1,048,576", 1 << 22: "4,194,304"}


def sums(n):
    def pair(metric, size, kind, suffix="", **where):
        return [microseconds(n(metric, f"{size}-{type}-{kind}{suffix}", **where)) for type in ("f32", "f64")]

    def over(ours, theirs):
        return " / ".join(map(ratio, ours, theirs)) if all(theirs) else ""
    for kind, more in (("sum", ""), ("each", ", an adjoint for each")):
        for size, title in SIZES.items():
            ours, best, fixed = (pair("graph_ms", size, kind), pair("best_ms", size, kind, label="by hand"),
                                 pair("fixed_ms", size, kind, label="by hand"))
            yield [title + more, joined(*ours), joined(*best), over(ours, best), joined(*fixed), over(ours, fixed)]


def orders(n):
    for name in ("exponential", "rare"):
        for size, title in SIZES.items():
            cells = []
            for body in ("fast", "accurate"):
                times = [n("graph_ms", f"{name}-{body}", label=f"{label} {size}") for label in ("sorted", "unsorted")]
                cells += [*map(short, times), ratio(*times)]
            if all(cells):
                yield [f"{name}, {title}", *cells]


SCENES = [*((f"{colliders}-{active}%", f"{colliders}, {active} %") for colliders in (1, 4, 16) for active in (0.5, 8, 100)),
          ("4-8%-moving", "4, 8 %, colliders that move")]


def grids(n):
    for case, title in SCENES:
        primal, gradient, graph = (n(metric, case, device="cuda") for metric in ("primal_ms", "gradient_ms", "graph_ms"))
        yield [title, short(primal), short(gradient), short(graph), ratio(gradient, primal), megabytes(n("heap_bytes", case, device="cuda"))]


def vulkan_grids(n):
    for case, title in SCENES:
        cells = []
        for metric in ("primal_ms", "graph_ms"):
            cuda, vulkan = (n(metric, case, device=device) for device in ("cuda", "vulkan"))
            cells += [short(cuda), short(vulkan), ratio(vulkan, cuda)]
        granted = {"device": "vulkan", "label": "2 GB"}
        yield [title, *cells, short(n("graph_ms", case, **granted)), megabytes(n("heap_bytes", case, **granted))]


def vulkan_sums(n):
    for size, title in SIZES.items():
        cells = []
        for type in ("f32", "f64"):
            cuda, vulkan = (microseconds(n("graph_ms", f"{size}-{type}-sum", device=device)) for device in ("cuda", "vulkan"))
            cells += [short(cuda), short(vulkan), ratio(vulkan, cuda)]
        yield [title, *cells]


WORKS = [*(("tape-uniform", str(iterations)) for iterations in (64, 256, 1024)),
         ("tape-ragged", "exponential"), ("tape-ragged", "rare"), ("tape-while", "while"), ("tape-nest", "nest")]


def vulkan_tapes(n):
    for bench, work in WORKS:
        for body in ("fast", "accurate", "proof"):
            where = {"case": f"{work}-{body}", "bench": bench}
            cuda, vulkan = (n("graph_ms", device=device, **where) for device in ("cuda", "vulkan"))
            granted = {"device": "vulkan", "label": "2 GB", **where}
            yield [f"{'uniform ' if work[0].isdigit() else ''}{work}, {body}", short(cuda), short(vulkan), ratio(vulkan, cuda),
                   megabytes(n("heap_bytes", device="vulkan", **where)), short(n("graph_ms", **granted)), megabytes(n("heap_bytes", **granted))]


# -- Problems -----------------------------------------------------------------

def either(n, metric, cases, **where):
    """Of the inputs of ADBench, or of random ones of the same size."""
    return next((found for case in cases if (found := n(metric, case, **where)) is not None), None)


GPU_PROBLEMS = {
    "gmm_d10_K25": ["gmm_d10_K25", "random_gmm_d10_K25"],
    "gmm_d20_K50": ["gmm_d20_K50", "random_gmm_d20_K50"],
    "gmm_d32_K25": ["gmm_d32_K25", "random_gmm_d32_K25"],
    "gmm, 10,000 points, d = 64, K = 25": ["random_gmm_d64_K25"],
    "ba, 225,911 observations": ["ba5_n257_m65132_p225911", "random_ba_n257_m65132_p225911"],
    "lstm, 2 layers of 1,024 steps (one thread)": ["lstm_l2_c1024", "random_lstm_l2_c1024"],
}


def gpu_problems(n):
    for title, cases in GPU_PROBLEMS.items():
        primal, gradient, on_cpu, gradient_on_cpu = (
            either(n, metric, cases) for metric in ("primal_ms", "gradient_ms", "cpu_primal_ms", "cpu_gradient_ms"))
        yield [title, short(primal), short(gradient), ratio(gradient, primal), short(on_cpu), short(gradient_on_cpu), ratio(gradient_on_cpu, gradient)]


CENTRES = [f"kmeans_k{k}_n10000_d8" for k in (10, 100, 1000)]
FACTORS = ["4096_of_3_to_16", "512_of_3_to_64"]
CHAINS = ["1_links_4096_scenes", "13_links_256_scenes", "30_links_16_scenes"]


def gpu_loops(n):
    def each(title, cases):
        return [title, *(joined(*(n(metric, case) for case in cases)) for metric in ("primal_ms", "gradient_ms"))]
    yield each("k-means of 10,000 points in 8 dimensions, 10 / 100 / 1000 centres; with the product of the Hessian", CENTRES)
    yield each("the particle, 354 iterations of one thread, primal and gradient", ["particle"])
    yield each("Cholesky factors: 4096 of 3 to 16 rows / 512 of 3 to 64", FACTORS)
    yield each("100 steps of 4096 trees of 1 link / 256 of 13 / 16 of 30, with recording", CHAINS)


def graphs(n):
    for size, title in (("1000", "1,000"), ("1000000", "1,000,000")):
        yield [title, *(short(n(metric, size, bench="graph")) for metric in ("gradient_ms", "graph_ms"))]


# -- CPUs ---------------------------------------------------------------------

CPU_PROBLEMS = {
    "gmm_d2_K5": "gmm_d2_K5", "gmm_d10_K25": "gmm_d10_K25", "gmm_d20_K50": "gmm_d20_K50", "gmm_d32_K25": "gmm_d32_K25",
    "d = 64, K = 50, 1,000 points": "random_gmm_d64_K50", "d = 128, K = 50, 1,000 points": "random_gmm_d128_K50",
    "d = 64, K = 25, 10,000 points": "random_gmm_d64_K25",
    "lstm_l2_c1024": "lstm_l2_c1024", "lstm_l4_c1024": "lstm_l4_c1024",
    "ba1 (31,843 observations)": "ba1_n49_m7776_p31843", "ba5 (225,911)": "ba5_n257_m65132_p225911",
}


def problems(n):
    def of(title, case):
        primal, gradient, baseline, hand = (n(metric, case) for metric in ("primal_ms", "gradient_ms", "baseline_ms", "by_hand_ms"))
        return [title, *map(short, (primal, gradient)), ratio(gradient, primal), *map(short, (baseline, hand)), ratio(gradient, hand)]
    return [of(title, case) for title, case in CPU_PROBLEMS.items()]


def mixtures(n):
    for d in (64, 128):
        for label, vectors in (("AVX2", "AVX2"), (None, "AVX-512")):
            primal, gradient, hand = (n(metric, f"random_gmm_d{d}_K50", label=label) for metric in ("primal_ms", "gradient_ms", "by_hand_ms"))
            yield [f"d = {d}, K = 50", vectors, short(primal), short(gradient), short(hand), ratio(gradient, hand)]


def compile_times(n):
    for name, sizes, title in (("ops", (100, 130, 200, 500, 1000, 2000), "{} operations"), ("nesting", (1, 2, 4, 8), "{} nested loops around 60 operations")):
        for size in sizes:
            times = [n(metric, f"{name}_{size}") for metric in ("compile_ms", "cached_ms")]
            yield [title.format(size), *map(short, times)]


def called_functions(n):
    for case, title in (("inlined", "part of the kernel"), ("called", "called")):
        yield [title, *(short(n("compile_ms", f"{case}_{what}", label=label)) for label in (None, "simt") for what in ("primal", "both"))]


def loops(n):
    for title, case in (("one work item of 10,000,000 iterations", "one_of_10000000"),
                        ("100,000 work items of 0 to 96 iterations", "ragged_100000"), ("65,536 rays", "volume_256")):
        primal, gradient, saved = (n(metric, case) for metric in ("primal_ms", "gradient_ms", "saved_bytes"))
        yield [title, short(primal), short(gradient), ratio(gradient, primal), megabytes(saved)]


def recordings(n):
    for launches in (1000, 8000):
        yield [f"{launches:,}", *(short(n(metric, f"{case}, {launches}")) for case in ("array", "two ranges", "element")
                                  for metric in ("record_us", "reverse_us"))]


def heat(n):
    for threads in (1, 2):
        launch, recorded, reverse = (n(metric, "heat, 2048", threads=threads) for metric in ("launch_us", "record_us", "reverse_us"))
        yield [str(threads), short(launch), short(recorded), ratio(recorded, launch), short(reverse)]


def cpu_loops(n):
    def each(title, cases):
        return [title, *(joined(*(n(metric, case) for case in cases)) for metric in ("primal_ms", "gradient_ms", "baseline_ms"))]
    yield each("particle, 354 iterations, value and derivative", ["particle"])
    yield each("k-means, 10,000 points, 10 / 100 / 1000 centres, with the product of the Hessian", CENTRES)
    yield each("Cholesky factors: 4096 of 3 to 16 rows / 512 of 3 to 64; baseline: the gradient by hand", FACTORS)
    yield each("100 steps of 4096 trees of 1 link / 256 of 13 / 16 of 30, with recording", CHAINS)


def sine_of_exponential(n):
    for type in ("f64", "f32"):
        yield [type, *(short(n(metric, f"{type}_1048576")) for metric in ("primal_ms", "gradient_ms", "baseline_ms"))]


FUNCTIONS = ("sin", "cos", "tan", "exp", "exp2", "log", "log10", "powf", "tanh", "sinh", "cosh", "log1p", "hypot", "erf", "erfc")


def functions(n):
    for name in FUNCTIONS:
        yield [name.removesuffix("f") if name == "powf" else name, *(short(n(f"{type}{by}_ns", name), 2)
                                                                     for type in ("f32", "f64") for by in ("", "_glibc", "_libmvec"))]


def budgets(n):
    for case, choices in (("wave", ("everything", "64 snapshots", "16 snapshots", "64 snapshots, unknown", "16 snapshots, unknown")),
                          ("growth", ("everything", "512MB", "128MB")), ("points", ("everything", "400MB", "100MB")),
                          ("loop", ("everything", "64MB", "1MB", "64kB")), ("while", ("everything", "64MB", "1MB", "64kB"))):
        for choice in choices:
            name = f"{case}, {choice}"
            time = n("gradient_ms", name)
            if time is not None:
                yield [name, short(time), ratio(time, n("gradient_ms", f"{case}, everything")), short(n("launches_per_step", name), 4),
                       short(n("peak_bytes", name) / 1e6)]


def cpu_sums(n):
    for size, title in ((65536, "65,536"), (1 << 22, "4,194,304")):
        yield [title, *(over_primal(n, f"{size}-f32-{kind}") for kind in ("sum", "each"))]


def lanes(n):
    for case, title in (("volume", "volume renderer"), ("mandelbrot-100", "Mandelbrot set, 100 iterations"),
                        ("mandelbrot-1000", "1000 iterations"), ("particles", "falling particles")):
        for kind in ("f32", "f64"):
            one = n("one_lane_ms", f"{case}-{kind}")
            both = [(ms, n("one_lane_ms", f"{case}-{kind}", label=label) / ms)
                    for label in (None, "AVX2") if (ms := n("lanes_ms", f"{case}-{kind}", label=label))]
            yield [title, kind, short(one), *(cell for ms, times in both for cell in (short(ms), short(times, 2)))]


def scatters(n):
    for threads in (1, 2):
        plain, fixed = (n(metric, "1000000", threads=threads) for metric in ("primal_ms", "deterministic_ms"))
        yield [str(threads), short(plain), short(fixed), ratio(fixed, plain)]


def demo(n):
    for case, title in (("p2g", "from particles to the grid"), ("g2p", "from the grid to particles")):
        primal, gradient = n("primal_ms", case), n("gradient_ms", case)
        yield [title, short(primal), short(gradient), ratio(gradient, primal)]


LAUNCHES = (("C++", "C++"), ("Kernel.launch(a, b, c, d)", "`_core.Kernel.launch(a, b, c, d)`"), ("Kernel.grad(a, b, c, d)", "its gradient, `_core.Kernel.grad(a, b, c, d)`"),
            ("@kernel with ndarrays", "`@kernel` with four ndarrays, which it has seen before"), ("@kernel with ndarrays, its gradient", "its gradient"),
            ("@kernel with tensors of PyTorch", "`@kernel` with four tensors of PyTorch and their versions"), ("@kernel with tensors of PyTorch, its gradient", "its gradient"),
            ("@kernel with 150 members", "`@kernel` with a frozen dataclass of 150 ndarrays, by position"), ("@kernel with 150 members, by keywords", "by keyword"),
            ("@kernel with 150 members, with a result", "with a result"), ("@kernel with 150 members, its gradient", "its gradient"))


def launches(n):
    plain = n("primal_us", "C++")
    for case, title in LAUNCHES:
        time = n("primal_us", case)
        if time is not None:
            yield [title, short(time), "" if case == "C++" else short(time - plain)]


def imports(n):
    for case, title in (("costate", "`import costate`"), ("numpy", "`import numpy` alone"), ("costate after numpy", "`import costate` after it")):
        yield [title, short(n("import_ms", case))]


# -- All of them --------------------------------------------------------------

TAPES = "tape-uniform tape-ragged tape-while tape-nest"
BENCH = "build/release/bin/costate-bench"
SHORT = "--no-budgets --min-time 0.02"
GRANTED = f"COSTATE_TAPE_BUDGET=2g {BENCH}"
COMPARE = "build/release/yardsticks/compare.py"

ALONE = "--threads 1 --processor-time"  # of one thread: what it takes on a core of its own
AVX2 = "COSTATE_VECTORS=avx2"
MEASUREMENTS = {
    "adbench": 3 * [f"./dev bench adbench {ALONE}", f"{AVX2} ./dev bench adbench {ALONE} --label AVX2"],
    "compile": 3 * [f"./dev bench compile {ALONE}", f"./dev bench compile {ALONE} --device simt --label simt"],
    "loops": 3 * [f"./dev bench loops --no-budgets {ALONE}"],
    "recordings": 3 * ["./dev bench recordings --threads 1 2"],
    "gradbench": 3 * [f"./dev bench gradbench chain cholesky {ALONE}"],
    "maths": 3 * [f"./dev bench maths {ALONE}"],
    "sums": 3 * [f"./dev bench uniform-read {ALONE}"],
    "stencils": 3 * [f"./dev bench stencil {ALONE}", f"{AVX2} ./dev bench stencil {ALONE} --label AVX2"],
    "instructions": ["./dev bench instructions"],
    "lanes": 3 * [f"./dev bench lanes {ALONE}", f"{AVX2} ./dev bench lanes {ALONE} --label AVX2"],
    "scatter": 3 * ["./dev bench scatter --threads 1 2 --processor-time"],
    "demo": 3 * [f"./dev bench demo {ALONE}"],
    "launches": 3 * ["./dev bench python"],
    "budgets": 2 * ["./dev bench budgets --threads 1"],
    "budgets-cuda": 2 * ["./dev bench budgets --device cuda"],
    "stencils-cuda": ["./dev bench stencils --device cuda"],
    "tapes-cuda": [f"{COMPARE} --only tapes --rounds 1 --min-time 0.01 --no-budgets"],
    "sums-cuda": [f"{COMPARE} --only reads --rounds 2 --min-time 0.02"],
    "orders-cuda": [f"COSTATE_SORT={sort} {BENCH} tape-ragged --items {size} --no-budgets --min-time 0.02 --device cuda --label '{label} {size}'"
                    for size in SIZES for sort, label in (("always", "sorted"), ("never", "unsorted"))],
    "adbench-cuda": [f"{BENCH} adbench --min-time 0.1 --device cuda"],
    "loops-cuda": [f"{BENCH} gradbench cholesky chain graph --min-time 0.1 --device cuda"],
    "grids-cuda": [f"{BENCH} mpm-grid {SHORT} --device cuda"],
    "grids-vulkan": [*(f"{BENCH} mpm-grid {SHORT} --device {device}" for device in ("cuda", "vulkan", "vulkan")),
                  f"{GRANTED} mpm-grid {SHORT} --device vulkan --label '2 GB'"],
    "sums-vulkan": [f"{BENCH} uniform-read {SHORT} --device {device}" for device in ("cuda", "vulkan", "vulkan")],
    "tapes-vulkan": [*(f"{BENCH} {TAPES} {SHORT} --device {device}" for device in ("cuda", "vulkan", "vulkan")),
                  f"{GRANTED} {TAPES} {SHORT} --device vulkan --label '2 GB'"],
}

BUDGETS = ["recording or loop, what is kept", "gradient", "ratio", "launches", "MB"]
BOTH = "with `--device cuda` and `vulkan`"
TABLES = {
    "adbench": Table(
        "adbench", "`./dev bench adbench --threads 1`", ["input", "objective", "gradient", "ratio", "baseline", "by hand", "gradient / by hand"], problems),
    "mixtures": Table(
        "adbench", "`./dev bench adbench --threads 1`, with `COSTATE_VECTORS=avx2` and without",
        ["", "vectors", "objective", "gradient", "by hand", "gradient / by hand"], mixtures),
    "compile": Table("compile", "`./dev bench compile`", ["a kernel and its gradient", "compiled", "from the cache"], compile_times),
    "calls": Table(
        "compile", "`./dev bench compile`", ["", "primal", "primal and gradient", "on `simt`", "primal and gradient"], called_functions),
    "loops": Table("loops", "`./dev bench loops --threads 1`", ["", "primal", "gradient", "ratio", "saved, MB"], loops),
    "recordings": Table(
        "recordings", "`./dev bench recordings`, µs",
        ["launches", "an array, recorded", "reversed", "two ranges, recorded", "reversed", "one element of 1024, recorded", "reversed"], recordings),
    "heat": Table("recordings", "`./dev bench recordings`, µs", ["threads", "launch", "recorded", "ratio", "reversed"], heat),
    "gradbench": Table(
        "gradbench", "`./dev bench gradbench chain cholesky --threads 1`", ["case", "primal", "gradient", "baseline"], cpu_loops),
    "maths": Table("maths", "`./dev bench maths --threads 1`, 1,048,576 elements", ["type", "primal", "gradient", "libm"], sine_of_exponential),
    "functions": Table(
        "maths", "`./dev bench maths --threads 1`, ns for an element", ["function", "f32", "glibc", "libmvec", "f64", "glibc", "libmvec"], functions),
    "sums": Table(
        "sums", "`./dev bench uniform-read --threads 1`, primal / gradient (ratio)", ["work items", "all y in one sum", "each y kept"], cpu_sums),
    "stencils": Table(
        "stencils", "`./dev bench stencil --threads 1`, with `COSTATE_VECTORS=avx2` and without, primal / gradient (ratio)",
        ["case", "vectors", "inside", "one-sided", "clamped", "periodic"], kinds),
    "instructions": Table(
        "instructions", "`./dev bench instructions`",
        ["", "kernel", "gradient", "of which products", "sums", "guards", "moves", "prefetches", "others"], instructions),
    "lanes": Table(
        "lanes", "`./dev bench lanes --threads 1`, with `COSTATE_VECTORS=avx2` and without",
        ["primal", "type", "one lane", "lanes, AVX-512", "times faster", "AVX2", "times faster"], lanes),
    "scatter": Table("scatter", "`./dev bench scatter`, all threads together", ["threads", "atomic", "deterministic", "ratio"], scatters),
    "demo": Table("demo", "`./dev bench demo --threads 1`", ["kernel", "primal", "gradient", "ratio"], demo),
    "launches": Table("launches", "`./dev bench python`, µs", ["launch", "µs", "over C++"], launches),
    "imports": Table("launches", "`./dev bench python`, processor time", ["", "ms"], imports),
    "budgets": Table("budgets", "`./dev bench budgets --threads 1`", BUDGETS, budgets),
    "budgets-cuda": Table("budgets-cuda", "`./dev bench budgets --device cuda`", BUDGETS, budgets),
    "stencils-cuda": Table(
        "stencils-cuda", "`./dev bench stencils --device cuda`",
        ["border", *(f"{dims} D, {kind}{body}" for dims in (2, 3) for kind in ("f32", "f64") for body in ("", ", cube"))], spellings),
    "tapes-cuda": Table(
        "tapes-cuda", "`compare.py --only tapes --rounds 1 --min-time 0.01 --no-budgets`",
        ["case", "gradient, in a graph", "by hand, best column", "ratio", "by hand, sorted, no heap", "ratio", "our heap, MB", "its heap, MB", "rows of pairs"], tapes),
    "sums-cuda": Table(
        "sums-cuda", "`compare.py --only reads --min-time 0.02`, µs, f32 / f64",
        ["work items", "gradient", "by hand, any order", "ratio", "by hand, fixed order", "ratio"], sums),
    "orders-cuda": Table(
        "orders-cuda", "`costate-bench tape-ragged --items N --no-budgets --device cuda` with `COSTATE_SORT=always` and `never`, gradients in graphs",
        ["iterations, work items", "fast, sorted", "unsorted", "ratio", "accurate, sorted", "unsorted", "ratio"], orders),
    "grids-cuda": Table(
        "grids-cuda", f"`costate-bench mpm-grid {SHORT} --device cuda`",
        ["colliders, active cells", "primal", "gradient", "in a graph", "gradient / primal", "heap, MB"], grids),
    "adbench-cuda": Table(
        "adbench-cuda", "`costate-bench adbench --device cuda`",
        ["input", "primal", "gradient", "ratio", "CPU, primal", "CPU, gradient", "CPU / GPU, gradients"], gpu_problems),
    "gradbench-cuda": Table(
        "loops-cuda", "`costate-bench gradbench cholesky chain --device cuda`", ["case", "primal", "gradient"], gpu_loops),
    "graphs-cuda": Table(
        "loops-cuda", "`costate-bench graph --device cuda`, 16 launches and 16 gradients", ["work items", "one by one", "as a graph"], graphs),
    "vulkan-grids": Table(
        "grids-vulkan", f"`costate-bench mpm-grid {SHORT}` {BOTH}",
        ["`mpm-grid` (colliders, active)", "primal, CUDA", "Vulkan", "ratio", "gradient, CUDA", "Vulkan", "ratio", "with 2 GB", "heap, MB"], vulkan_grids),
    "vulkan-sums": Table(
        "sums-vulkan", f"`costate-bench uniform-read {SHORT}` {BOTH}, µs",
        ["`uniform-read`, gradient", "f32, CUDA", "Vulkan", "ratio", "f64, CUDA", "Vulkan", "ratio"], vulkan_sums),
    "vulkan-tapes": Table(
        "tapes-vulkan", f"`costate-bench {TAPES} {SHORT}` {BOTH}", ["gradient", "CUDA", "Vulkan", "ratio", "its heap, MB", "with 2 GB", "heap, MB"], vulkan_tapes),
}
