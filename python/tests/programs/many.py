"""Compares some random programs, in a process of its own."""

import collections

import costate
from programs.compare import compare, compare_by_hand, compare_scalars, programs_of


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
            found = compare(seed, program, ir) or compare_scalars(seed, program) or compare_by_hand(seed, program, ir)
        except Exception as error:  # noqa: BLE001: of any kind, it is a finding
            found = f"{type(error).__name__}: {error}"
        counts["whole" if not dropped else "without a part"] += not found
        if found:
            counts["different"] += 1
            findings.append(f"seed {seed}: {found}")
    return counts, findings
