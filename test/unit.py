"""The GoogleTest binary, in two shards at a time."""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from report import Counts

SHARDS = 2
LIMIT_S = 1800
BEGIN = re.compile(r"^\[ RUN      \] (\S+)", re.M)
DEFECT = re.compile(r"^costate: validation: .*", re.M)
END = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] ([^\s,]+)", re.M)


def start(binary, shard, folder, labels, chosen):
    environment = dict(os.environ, GTEST_TOTAL_SHARDS=str(SHARDS),
                       GTEST_SHARD_INDEX=str(shard), **chosen)
    log = open(folder / f"{shard}.log", "w")
    return subprocess.Popen(
        [binary, f"--labels={labels}", f"--gtest_output=json:{folder}/{shard}.json", "--gtest_color=no"],
        env=environment, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)


def message(test):
    return "\n".join(failure["failure"] for failure in test["failures"])


def count_finished(document, counts):
    """Results of a shard that ran to its end."""
    for suite in document["testsuites"]:
        for test in suite["testsuite"]:
            name = f"{suite['name']}.{test['name']}"
            if "failures" in test:
                counts.fails(name, message(test))
            elif test.get("result") == "SKIPPED" or "skipped" in test:
                counts.skips(name)
            elif test.get("status") == "RUN":
                counts.passes()


def count_crashed(log, status, counts):
    """Results of a shard that ended early, from what it printed."""
    results = {}
    for outcome, name in END.findall(log):
        results[name] = outcome
    for name, outcome in results.items():
        if outcome == "OK":
            counts.passes()
        elif outcome == "SKIPPED":
            counts.skips(name)
        else:
            counts.fails(name, "see the log of the crash")
    running = [name for name in BEGIN.findall(log) if name not in results]
    where = f"in {running[-1]}" if running else "outside any test"
    counts.fails(f"the test binary ended with status {status} {where}", log)


def count_defects(log, counts):
    """What validation of a device has found outside of any call."""
    for defect in DEFECT.findall(log):
        counts.fails("validation of a device", defect)


def run(root, build, preset, labels="", **chosen):
    """`labels`: see test/Labels.h; `chosen`: environment variables."""
    counts = Counts()
    binary = build / "bin" / "costate-test"
    if not binary.exists():
        counts.fails("costate-test", "has not been built")
        return counts
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shards = [start(binary, shard, folder, labels, chosen) for shard in range(SHARDS)]
        for index, process in enumerate(shards):
            try:
                status = process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                status = f"'no end after {LIMIT_S} s'"
                process.wait()
            result = folder / f"{index}.json"
            log = (folder / f"{index}.log").read_text(errors="replace")
            count_defects(log, counts)
            if status in (0, 1) and result.exists():
                before = len(counts.failed)
                count_finished(json.loads(result.read_text()), counts)
                if status == 1 and len(counts.failed) == before:
                    counts.fails("the test binary failed outside its tests", log)
            else:
                count_crashed(log, status, counts)
    return counts


def run_quick(root, build, preset):
    return run(root, build, preset, "-slow")
