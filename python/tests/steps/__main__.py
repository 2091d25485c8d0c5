"""Compares many random programs: python -m steps --count 2000 --seed 1"""

import argparse
from unittest import mock

import costate as ti
from costate.lang import runtime
from steps.compare import compare, program
from steps.world import Real


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--apart", action="store_true", help="the host has copies of arrays, as for a GPU")
    arguments = parser.parse_args()
    ti.init(default_fp=ti.f64)
    real, wrong = Real(), 0
    shared = False if arguments.apart else runtime.shares_memory()
    with mock.patch.object(runtime, "shares_memory", lambda: shared):
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            difference = compare(real, seed)
            if difference:
                wrong += 1
                print(f"seed {seed}: {difference}; {program(seed)[1]}", flush=True)
    print(f"{arguments.count} programs, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    raise SystemExit(main())
