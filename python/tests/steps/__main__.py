"""Compares many random programs: python -m steps --count 2000 --seed 1"""

import argparse
import threading
from unittest import mock

import costate as ti
from costate.lang import runtime
from steps.compare import compare, program, values_by_threads
from steps.world import Real


def every(seeds, wrong, how):
    """The programs of some seeds, in a world of their own."""
    real = Real()
    for seed in seeds:
        try:
            difference = how(real, seed)
        except Exception as error:  # noqa: BLE001
            difference = repr(error)
        if difference:
            wrong.append(seed)
            print(f"seed {seed}: {difference}; {program(seed)[1]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--apart", action="store_true", help="the host has copies of arrays, as for a GPU")
    parser.add_argument("--threads", type=int, default=1, help="so many at the same time")
    parser.add_argument("--how", choices=("alone", "writes", "values"), default="alone",
                        help="what threads of their own do: nothing, host writes, or steps without derivatives")
    arguments = parser.parse_args()
    ti.init(default_fp=ti.f64)
    how = {"alone": compare, "writes": lambda *a: compare(*a, threads=True), "values": values_by_threads}[arguments.how]
    wrong, n = [], arguments.threads
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    shared = False if arguments.apart else runtime.shares_memory()
    with mock.patch.object(runtime, "shares_memory", lambda: shared):
        threads = [threading.Thread(target=every, args=(seeds[k::n], wrong, how)) for k in range(n)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    print(f"{arguments.count} programs, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
