"""What the scripts of all systems share: clocks, inputs, and a process for each case."""

import json
import os
import platform
import signal
import sys
import time

import numpy as np

import cases

ITEMS = int(os.environ.get("PEERS_ITEMS", "100000"))
CACHE = os.environ.get("PEERS_CACHE", "")
SECONDS = float(os.environ.get("PEERS_SECONDS", "2"))
BOTH_MATHS = os.environ.get("PEERS_BOTH_MATHS") == "1"
LIMIT = int(os.environ.get("PEERS_LIMIT", "120"))  # seconds for a case


def clock():
    """Seconds of the world and of all threads of this process."""
    return np.array([time.perf_counter(), time.process_time()])


def since(begin):
    return [float(t) for t in clock() - begin]


def per_call(call, sync):
    """Seconds of a call: the least means over some batches, of both clocks."""
    for _ in range(200):
        call()
    sync()
    batch, best, end = 200, np.full(2, np.inf), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = clock()
        for _ in range(batch):
            call()
        sync()
        best = np.minimum(best, np.array(since(begin)) / batch)
    return best.tolist()


def least(call):
    """The least seconds of a call within some seconds, and of three calls at least."""
    best, done, end = np.full(2, np.inf), 0, time.perf_counter() + SECONDS
    while done < 3 or time.perf_counter() < end:
        begin = clock()
        call()
        best = np.minimum(best, since(begin))
        done += 1
    return best.tolist()


LENGTHS = {"0 to 100": lambda random, items: random.integers(0, 101, items),
           "64": lambda random, items: np.full(items, 64),
           "63, exponential": lambda random, items: np.minimum(random.exponential(63, items), 1000),
           "1024": lambda random, items: np.full(items, 1024)}

CHOSEN = json.loads(os.environ.get("PEERS_LENGTHS", "null")) or list(LENGTHS)[:3]


def inputs(items, dtype, lengths="0 to 100"):
    """Inputs, and the iterations of each work item."""
    random = np.random.default_rng(3)
    return random.uniform(0.5, 1.5, items).astype(dtype), LENGTHS[lengths](random, items).astype(np.int32)


def check_recurrence(body, x, n, found):
    v, slope = x.astype(float), np.ones(len(x))
    for k in range(n.max()):
        on = n > k
        if body == "decay":
            slope[on] *= 0.95
            v[on] = 0.95 * v[on] + 0.01
        else:
            slope[on] *= np.sin(v[on]) + v[on] * np.cos(v[on])
            v[on] = v[on] * np.sin(v[on]) + (0.7 if body == "hover" else 0.0)
    tolerance = 2e-3 if x.dtype == np.float32 else 1e-6
    wrong = np.abs(found - slope) > tolerance * np.maximum(1.0, np.abs(slope))
    return "right" if not wrong.any() else f"wrong for {100 * wrong.mean():.0f} %"


def first_line(error):
    """The class of an error and the line that says most."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" ~^\t")] or [""]
    telling = [line for line in lines if "not supported" in line.lower()]
    return f"{type(error).__name__}: {(telling[-1:] or lines)[0]}"[:240]


def run_case(case, function, start, options):
    start(**options)
    try:
        found = function(case.x)
    except Exception as error:
        return "error", first_line(error), None
    return cases.judge(case, found)


def in_process(work):
    """The result of `work` in a process of its own, which may crash."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            answer = work()
        except BaseException as error:
            answer = "error", first_line(error), None
        with os.fdopen(writer, "w") as out:
            json.dump(answer, out)
        os._exit(0)
    os.close(writer)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(LIMIT)
    with os.fdopen(reader) as text:
        answer = text.read()
    signal.alarm(0)
    _, status = os.waitpid(child, 0)
    if answer:
        return tuple(json.loads(answer))
    number = status & 127
    if number == signal.SIGKILL:
        return "error", f"not ready after {LIMIT} s", None
    return "crash", signal.strsignal(number) or f"exit status {status >> 8}", None


def conformance(table, start, ways):
    rows = []
    for case in cases.CASES:
        function = table.get(case.name)
        for way, options in ways.items():
            if function is None:
                verdict, text, error = "cannot", "", None
            else:
                verdict, text, error = in_process(lambda: run_case(case, function, start, options))
            rows.append({"case": case.name, "way": way, "verdict": verdict, "text": text, "error": error})
            if verdict in ("right", "cannot"):
                break
    return rows


def main(system, version, launch, first, recurrence, conformance):
    parts = {"launch": launch, "first": first, "recurrence": recurrence, "conformance": conformance}
    version = ".".join(map(str, version)) if isinstance(version, tuple) else version
    answer = parts[sys.argv[-1]]()
    print("\nRESULT " + json.dumps({"system": system, "version": version, "python": platform.python_version(), "result": answer}))
