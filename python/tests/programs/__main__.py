"""Compares many random programs: python -m programs FUZZER --count 20000 --jobs 16"""

import argparse
import collections
import functools
import multiprocessing

import costate
from programs.compare import compare, programs_of


def check(fuzzer, device, chunk):
    """How many of some seeds are the same, and what is to be said about the others."""
    costate.init(arch=getattr(costate, device), default_fp=costate.f64, default_ip=costate.i64,
                 cpu_max_num_threads=1)
    counts, findings = collections.Counter(), []
    for seed, program, dropped, ir in programs_of(fuzzer, chunk[0], len(chunk)):
        if ir is None:
            counts["invalid without what Python lacks"] += 1
            continue
        try:
            found = compare(seed, program, ir)
        except Exception as error:  # noqa: BLE001: of any kind, it is a finding
            found = f"{type(error).__name__}: {error}"
        counts["whole" if not dropped else "without a part"] += not found
        if found:
            counts["different"] += 1
            findings.append(f"seed {seed}: {found}")
    return counts, findings


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fuzzer", help="the program costate-fuzz")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    chunks = [seeds[k:k + 20] for k in range(0, len(seeds), 20)]
    counts = collections.Counter()
    # A fresh process for each chunk: compiled kernels stay as long as a process.
    with multiprocessing.get_context("spawn").Pool(arguments.jobs, maxtasksperchild=5) as pool:
        job = functools.partial(check, arguments.fuzzer, arguments.device)
        for some, findings in pool.imap_unordered(job, chunks):
            counts += some
            print(*findings, sep="\n", end="\n" if findings else "", flush=True)
    print(f"{sum(counts.values())} programs: "
          + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return counts["different"] > 0


if __name__ == "__main__":
    raise SystemExit(main())
