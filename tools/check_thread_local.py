#!/usr/bin/env python3
"""Checks that state of a thread is where CONTRIBUTING.md gives a reason for it."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STATE = r"^[^/#]*\b(thread_local|threading\.local)\b"
FOLDERS = ["src", "include", "python/bindings", "python/costate"]
ROW = re.compile(r"^\|(.*)\|.*\|$", re.M)


def users():
    found = subprocess.run(["git", "grep", "--untracked", "-lP", STATE, "--", *FOLDERS], cwd=ROOT,
                           capture_output=True, text=True)
    return set(found.stdout.split())


def explained():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text[text.index("State of a thread that no caller"):].split("\n\n")[1]
    return {name for row in ROW.findall(table) for name in re.findall(r"`([^`]+)`", row)}


def main():
    problems = [f"{name}: state of a thread without a reason in CONTRIBUTING.md"
                for name in sorted(users() - explained())]
    problems += [f"CONTRIBUTING.md: {name} has no state of a thread"
                 for name in sorted(explained() - users())]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
