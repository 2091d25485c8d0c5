"""Compares many random programs: python -m programs FUZZER --count 20000 --jobs 16"""

import argparse
import collections
import functools
import multiprocessing
import time

from programs.many import check


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fuzzer", help="the program costate-fuzz")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    chunks = [seeds[k:k + 20] for k in range(0, len(seeds), 20)]
    counts, end = collections.Counter(), time.monotonic() + arguments.seconds
    # A fresh process for each chunk: compiled kernels stay as long as a process.
    with multiprocessing.get_context("spawn").Pool(arguments.jobs, maxtasksperchild=5) as pool:
        job = functools.partial(check, arguments.fuzzer, arguments.device)
        for some, findings in pool.imap_unordered(job, chunks):
            counts += some
            print(*findings, sep="\n", end="\n" if findings else "", flush=True)
            if time.monotonic() > end:
                break
    print(f"{sum(counts.values())} programs: "
          + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return counts["different"] > 0


if __name__ == "__main__":
    raise SystemExit(main())
