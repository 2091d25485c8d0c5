#!/usr/bin/env python3
"""costate-bench beside what is written by hand in CUDA, in the same run.

Builds the programs of this folder with nvcc, runs each of them alternately with the
benchmarks that do the same, keeps the best of the rounds, and prints a table for
each. Needs a GPU, nvcc, and costate-bench in ../bin, ../../../bin or --costate.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

GROUPS = {
    "tapes": ("tape_protocol", ["tape-uniform", "tape-ragged", "tape-nest", "tape-while"]),
    "reads": ("reductions", ["uniform-read"]),
    "sines": ("sine", ["sine"]),
}


def fail(text):
    sys.exit(f"compare.py: {text}")


# -- Running ------------------------------------------------------------------

def find_bench(folder):
    candidates = [Path(folder)] if folder else [HERE.parent, HERE.parent.parent.parent]
    for candidate in candidates:
        for path in (candidate, candidate / "bin"):
            if (path / "costate-bench").is_file():
                return path / "costate-bench"
    fail(f"there is no costate-bench in {', '.join(map(str, candidates))}; name its folder with --costate")


def run(command, log):
    start = time.monotonic()
    with open(log, "a") as file:
        file.write(f"$ {' '.join(map(str, command))}\n")
        file.flush()
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=file, text=True)
        file.write(process.stdout)
    print(f"{Path(command[0]).name} {' '.join(map(str, command[1:5]))}: {time.monotonic() - start:.0f} s",
          file=sys.stderr, flush=True)
    if process.returncode != 0:
        tail = "".join(open(log).readlines()[-12:])
        print(f"compare.py: {command[0]} ended with status {process.returncode}:\n{tail}",
              file=sys.stderr, flush=True)
    return process


def build(arguments, programs, out):
    if arguments.built:
        for name in programs:
            shutil.copy2(arguments.built / name, out)
        return
    nvcc = shutil.which(arguments.nvcc)
    if not nvcc:
        fail(f"there is no {arguments.nvcc}; install CUDA's compiler or name it with --nvcc")
    compilers = {}
    for name in programs:
        command = [nvcc, "-std=c++20", "-O3", f"-arch={arguments.arch}", "-o", out / name, HERE / f"{name}.cu"]
        compilers[name] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for name, process in compilers.items():
        text, _ = process.communicate()
        if process.returncode != 0:
            fail(f"nvcc could not build {name}.cu:\n{text}")


def objects(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def yardstick(arguments, program, out):
    command = [out / program]
    if program == "tape_protocol":
        command += [str(arguments.items), str(arguments.replays)]
    return objects(run(command, out / "log.txt").stdout)


def ours(arguments, bench, names, out):
    results = []
    for name in names:
        file = out / "ours.json"
        file.unlink(missing_ok=True)
        command = [bench, name, "--device", arguments.device, "--json", file, "--min-time", str(arguments.min_time)]
        if name.startswith("tape"):
            command += ["--items", str(arguments.items)]
        if arguments.no_budgets:
            command.append("--no-budgets")
        run(command, out / "log.txt")
        results += objects(file.read_text()) if file.exists() else []
    return results


# -- Results ------------------------------------------------------------------

def lower(old, new, key):
    """Times are the best of the rounds; anything else must not get lost."""
    if key.endswith("_ms") or key == "ms":
        return min(old, new)
    if key in ("wrong", "differing", "differing_from_cpu", "rel_err", "refused"):
        return max(old, new)
    return new


def merge(into, rows):
    for row in rows:
        key = (row["bench"], row["case"])
        old = into.setdefault(key, dict(row))
        for name, value in row.items():
            if name == "columns":
                for a, b in zip(old["columns"], value):
                    a["ms"], a["wrong"] = min(a["ms"], b["ms"]), max(a["wrong"], b["wrong"])
            elif isinstance(value, (int, float)) and isinstance(old.get(name), (int, float)):
                old[name] = lower(old[name], value, name)
            else:
                old.setdefault(name, value)


def best_column(row):
    """None if all have failed."""
    return min((c for c in row["columns"] if not c["error"]), key=lambda c: c["ms"], default=None)


# -- Tables -------------------------------------------------------------------

def number(value, digits=4):
    if value is None:
        return "-"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def megabytes(value):
    return "-" if value is None else f"{value / 1e6:.1f}"


def ratio(a, b):
    return f"{a / b:.2f}" if a and b else "-"


def table(title, head, rows):
    print(f"\n{title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def tape_rows(mine, theirs):
    """Ratios are of graphs, which the protocol's times are of."""
    for key, row in mine.items():
        hand = theirs.get(key)
        if not hand or "columns" not in hand:
            continue
        best = best_column(hand)
        by_depth = best_column(theirs.get((key[0], key[1] + "-sorted"), {"columns": []}))
        sorted_ms = by_depth and by_depth["ms"]
        graph = row.get("graph_ms")
        adding = hand["protocol_adding_ms"]
        yield [f"{key[0][5:]} {key[1]}" if key[0] == "tape-uniform" else key[1], number(row.get("gradient_ms")),
               number(graph), f"{number(best['ms'])} {best['where']}", ratio(graph, best["ms"]),
               number(adding), ratio(graph, adding), number(hand["hand_ms"]),
               number(sorted_ms), ratio(graph, sorted_ms),
               megabytes(row.get("heap_bytes")), megabytes(best["heap_bytes"]),
               number(hand["pair_ms"]), ratio(hand["pair_ms"], graph),
               number(row.get("primal_ms")), number(row.get("rel_err"), 2),
               number(row.get("differing_from_cpu")), number(row.get("launches")),
               number(row.get("synchronizations")), number(row.get("host_copies")),
               number(row.get("primal_host_ms")), number(row.get("gradient_host_ms")), str(hand["wrong"])]


def column_for(budget, hand):
    """The column of the same part of the heap; for none, the best one on chip."""
    if budget == "none":
        return min((c for c in hand["columns"] if c["where"].startswith("shared") and not c["error"]),
                   key=lambda c: c["ms"])
    return next((c for c in hand["columns"] if c["where"] == f"heap {budget}"), None)


def budget_rows(mine, theirs):
    for (bench, case), row in mine.items():
        name, _, budget = case.partition(" ")
        hand = theirs.get((bench, name))
        if not budget or not hand:
            continue
        column = column_for(budget, hand)
        milliseconds = row.get("graph_ms")
        yield [name, budget, megabytes(row.get("budget_bytes")), megabytes(row.get("heap_bytes")),
               "refused" if row.get("refused") else number(milliseconds),
               number(column and column["ms"]), ratio(milliseconds, column and column["ms"]),
               number(row.get("differing"))]


def tapes(mine, theirs):
    table("Tapes: gradient launches, ms", ["case", "ours", "in a graph", "protocol, best column", "ours / it", "it, adding", "ours / it",
          "plain, need known", "sorted", "ours / it", "our MB", "its MB", "pairs", "pairs / ours", "our primal", "rel. error",
          "differing from CPU", "launches", "synchronisations", "host copies", "primal host ms", "gradient host ms",
          "its wrong"], tape_rows(mine, theirs))
    rows = list(budget_rows(mine, theirs))
    if rows:
        table("Tapes within budgets, in graphs, ms", ["case", "budget", "MB", "our MB", "ours", "protocol", "ours / it", "differing"],
              rows)


def ways(hand):
    """Times of the ways without an order."""
    return {k: v for k, v in hand.items() if k.endswith("_ms") and k not in ("stream_ms", "deterministic_ms")}


def reads(mine, theirs):
    rows = []
    for (bench, case), hand in theirs.items():
        row = mine.get((bench, case), {})
        fixed = mine.get((bench, case + "-deterministic"), {})
        times = ways(hand)
        name = min(times, key=times.get)
        a, b = (r.get("graph_ms", r.get("gradient_ms")) for r in (row, fixed))
        rows.append([case, number(row.get("gradient_ms")), number(a), number(b), f"{number(times[name])} {name[:-3]}", ratio(a, times[name]),
                     number(hand["deterministic_ms"]), ratio(b, hand["deterministic_ms"]), number(hand["stream_ms"]),
                     ratio(row.get("gradient_ms"), hand["stream_ms"]), number(row.get("rel_err"), 2), number(row.get("launches"))])
    table("Derivatives by a number that all work items read, ms",
          ["case", "ours, in a stream", "in a graph", "deterministic, in a graph", "best by hand, in a graph",
           "ours / it", "deterministic by hand, in a graph", "ours / it", "in a stream", "ours / it", "rel. error", "launches"], rows)


def sines(mine, theirs):
    rows = []
    for key, hand in theirs.items():
        row = mine.get(key, {})
        same = "yes" if row.get("checksum") == hand["checksum"] else f"no: {row.get('checksum')}, {hand['checksum']}"
        rows.append([key[1], number(row.get("primal_ms")), number(hand["cuda_ms"]),
                     ratio(row.get("primal_ms"), hand["cuda_ms"]), number(hand["same_ms"]), same])
    table("Sines, 64 iterations of 1,048,576, ms",
          ["case", "ours", "CUDA's", "ours / it", "ours, compiled by nvcc", "the same bits"], rows)


# -- A line for each case -----------------------------------------------------

def lines(results):
    """Ours as they are, and what was written by hand as numbers of its own label."""
    for group, both in results.items():
        yield from both["ours"]
        for hand in both["theirs"]:
            yield {"bench": hand["bench"], "case": hand["case"], "device": "cuda", "threads": 1, "label": "by hand", **by_hand(group, hand)}


def by_hand(group, hand):
    if group == "tapes":
        best = best_column(hand) or {}
        return {"best_ms": best.get("ms"), "heap_bytes": best.get("heap_bytes"), "pair_ms": hand.get("pair_ms")}
    if group == "reads":
        return {"best_ms": min(ways(hand).values()), "fixed_ms": hand["deterministic_ms"]}
    return {name: hand[name] for name in ("cuda_ms", "same_ms")}


# -- All of it ----------------------------------------------------------------

def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--costate", help="folder with costate-bench")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--arch", default="native", help="of nvcc: sm_90, ...")
    parser.add_argument("--built", type=Path, metavar="FOLDER", help="with the programs, built elsewhere: nvcc is not needed")
    parser.add_argument("--only", action="append", choices=GROUPS, help="one group; may be repeated")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--items", type=int, default=1 << 20, help="of tapes")
    parser.add_argument("--replays", type=int, default=50, help="of a graph, for one time by hand")
    parser.add_argument("--min-time", type=float, default=0.1, help="seconds for one of our times")
    parser.add_argument("--out", type=Path, help="folder for programs, log and results.json")
    parser.add_argument("--no-budgets", action="store_true", help="tapes have what memory they want only")
    parser.add_argument("--json", type=Path, help="file for the results, a line for each case, as costate-bench writes them")
    parser.add_argument("--from", dest="stored", type=Path, help="print the tables of a results.json; run nothing")
    return parser.parse_args()


def measure(arguments, out):
    groups = arguments.only or list(GROUPS)
    bench = find_bench(arguments.costate)
    build(arguments, [GROUPS[group][0] for group in groups], out)
    results = {}
    for group in groups:
        program, names = GROUPS[group]
        mine, theirs = {}, {}
        for _ in range(arguments.rounds):
            merge(theirs, yardstick(arguments, program, out))
            merge(mine, ours(arguments, bench, names, out))
        results[group] = {"ours": list(mine.values()), "theirs": list(theirs.values())}
        (out / "results.json").write_text(json.dumps(results))
        show({group: results[group]})
    return results


def show(results):
    """Whether all is there."""
    for group, both in results.items():
        mine, theirs = {}, {}
        merge(mine, both["ours"])
        merge(theirs, both["theirs"])
        {"tapes": tapes, "reads": reads, "sines": sines}[group](mine, theirs)
        for name, rows in (("costate-bench", mine), (GROUPS[group][0], theirs)):
            if not rows:
                print(f"compare.py: no results of {name} for {group}", file=sys.stderr)
    sys.stdout.flush()
    return all(both["ours"] and both["theirs"] for both in results.values())


def main():
    arguments = parse()
    if arguments.stored:
        return 0 if show(json.loads(arguments.stored.read_text())) else 1
    out = arguments.out or Path(tempfile.mkdtemp(prefix="costate-yardsticks-"))
    out.mkdir(parents=True, exist_ok=True)
    results = measure(arguments, out)
    print(f"compare.py: results and log are in {out}", file=sys.stderr)
    if arguments.json:
        arguments.json.write_text("".join(json.dumps(line) + "\n" for line in lines(results)))
    return 0 if all(both["ours"] and both["theirs"] for both in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
