"""The results of a run as a table; `python table.py FILE` prints that of a kept one."""

import json
import sys

import numpy as np

SYSTEMS = ("costate", "quadrants")
HEAD = ("scene", "cold, s", "warm, s", "step, ms", "gradient, ms", "memory cold, MB", "memory warm, MB", "largest difference",
        "of a moved start")


def least(answers, key):
    """The least values of some processes; None if they have none."""
    found = [answer[key] for answer in answers if key in answer]
    return np.min(found, axis=0) if found else None


def short(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def pair(scene, kind, key, scale=1.0):
    """`costate / quadrants`; of times those of the processor, and in parentheses those of the clock on the wall."""
    texts = []
    for answers in (scene[system][kind] for system in SYSTEMS):
        found = least(answers, key)
        if any("error" in answer for answer in answers):
            texts.append("failed")
        elif found is None:
            texts.append("")
        else:
            texts.append("{1} ({0})".format(*map(short, found * scale)) if found.size == 2 else short(found))
    return " / ".join(texts) if any(texts) else ""


def largest(differences):
    return f"{max(differences.values()):.1g}" if differences else "-"


def row(cells):
    return "| " + " | ".join(cells) + " |"


def row_of(name, scene):
    return row((name, pair(scene, "cold", "first"), pair(scene, "warm", "first"), pair(scene, "warm", "step", 1e3),
                pair(scene, "warm", "backward", 1e3), pair(scene, "cold", "memory_mb"), pair(scene, "warm", "memory_mb"),
                largest(scene["difference"]), largest(scene["moved"])))


def errors(result):
    """What the processes that failed say."""
    lines = []
    for name, scene in result["scenes"].items():
        for system in SYSTEMS:
            for answer in scene[system]["cold"] + scene[system]["warm"]:
                if "error" in answer:
                    lines.append(f"{name}, {system}: {answer['error']}")
    return list(dict.fromkeys(lines))


def page(result):
    lines = [f"`costate / quadrants`; seconds of the processor, and in parentheses of the clock on the wall; {result['machine']}; "
             f"{result['versions']}.", "", row(HEAD), "|" + "---|" * len(HEAD)]
    lines += [row_of(name, scene) for name, scene in result["scenes"].items()]
    return "\n".join(lines + [""] + errors(result)).rstrip()


if __name__ == "__main__":
    print(page(json.load(open(sys.argv[1]))))
