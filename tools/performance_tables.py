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
    """`0.08 / 0.24 (3.0)`: of the kernel and of its gradient."""
    def cell(case):
        primal, gradient = n("primal_ms", case), n("gradient_ms", case)
        return f"{joined(primal, gradient)} ({gradient / primal:.1f})" if primal else ""
    return [[border, *(cell(body + border) for body in BODIES)] for border in BORDERS]


# -- GPUs ---------------------------------------------------------------------

def tapes(n):
    def of(bench, case, title):
        where = {"bench": bench, "case": case}
        ours, best = n("graph_ms", **where), n("best_ms", label="by hand", **where)
        in_order = n("best_ms", bench=bench, case=case + "-sorted", label="by hand")
        return [title, short(ours), short(best), ratio(ours, best), short(in_order), ratio(ours, in_order), megabytes(n("heap_bytes", **where)),
                megabytes(n("heap_bytes", label="by hand", **where)), ratio(n("pair_ms", label="by hand", **where), ours)]
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


# -- All of them --------------------------------------------------------------

TAPES = "tape-uniform tape-ragged tape-while tape-nest"
BENCH = "build/release/bin/costate-bench"
COMPARE = "build/release/yardsticks/compare.py"

MEASUREMENTS = {
    "stencils-cuda": ["./dev bench stencils --device cuda"],
    "tapes-cuda": [f"{COMPARE} --only tapes --rounds 1 --min-time 0.01 --no-budgets"],
    "sums-cuda": [f"{COMPARE} --only reads --rounds 2 --min-time 0.02"],
    "orders-cuda": [f"COSTATE_SORT={sort} {BENCH} tape-ragged --items {size} --no-budgets --min-time 0.02 --device cuda --label '{label} {size}'"
                    for size in SIZES for sort, label in (("always", "sorted"), ("never", "unsorted"))],
    "problems-cuda": [f"{BENCH} adbench gradbench cholesky chain graph --min-time 0.1 --device cuda"],
    "vulkan": [*(f"{BENCH} mpm-grid uniform-read {TAPES} --no-budgets --min-time 0.02 --device {device}" for device in ("cuda", "vulkan", "vulkan")),
               f"COSTATE_TAPE_BUDGET=2g {BENCH} mpm-grid {TAPES} --no-budgets --min-time 0.02 --device vulkan --label '2 GB'"],
}

BOTH = f"`costate-bench mpm-grid uniform-read {TAPES} --no-budgets --min-time 0.02`"
TABLES = {
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
        "vulkan", "`costate-bench mpm-grid --device cuda --no-budgets --min-time 0.02`",
        ["colliders, active cells", "primal", "gradient", "in a graph", "gradient / primal", "heap, MB"], grids),
    "adbench-cuda": Table(
        "problems-cuda", "`costate-bench adbench --device cuda`",
        ["input", "primal", "gradient", "ratio", "CPU, primal", "CPU, gradient", "CPU / GPU, gradients"], gpu_problems),
    "gradbench-cuda": Table(
        "problems-cuda", "`costate-bench gradbench cholesky chain --device cuda`", ["case", "primal", "gradient"], gpu_loops),
    "graphs-cuda": Table(
        "problems-cuda", "`costate-bench graph --device cuda`, 16 launches and 16 gradients", ["work items", "one by one", "as a graph"], graphs),
    "vulkan-grids": Table(
        "vulkan", BOTH + ", with `--device cuda` and `vulkan`",
        ["`mpm-grid` (colliders, active)", "primal, CUDA", "Vulkan", "ratio", "gradient, CUDA", "Vulkan", "ratio", "with 2 GB", "heap, MB"], vulkan_grids),
    "vulkan-sums": Table(
        "vulkan", "The same run, µs",
        ["`uniform-read`, gradient", "f32, CUDA", "Vulkan", "ratio", "f64, CUDA", "Vulkan", "ratio"], vulkan_sums),
    "vulkan-tapes": Table(
        "vulkan", "The same run", ["gradient", "CUDA", "Vulkan", "ratio", "its heap, MB", "with 2 GB", "heap, MB"], vulkan_tapes),
}
