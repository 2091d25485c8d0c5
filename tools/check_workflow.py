#!/usr/bin/env python3
"""Checks that the public workflows run nothing but commands of `./dev`, which people have too."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = re.compile(r"^\s*(?:- )?run:\s*(.*)$")
COMMAND = re.compile(r"^  (?! )([a-z]+)\b", re.M)


def problems(path, commands):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        run = RUN.match(line)
        words = run[1].split() if run else []
        if run and (words[:1] != ["./dev"] or words[1:2] == [] or words[1] not in commands or set(run[1]) & set(";&|$`")):
            yield f"{path.relative_to(ROOT)}:{number}: `{run[1]}` is no command of ./dev"


def main():
    usage = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
    commands = set(COMMAND.findall(usage))
    found = [problem for path in sorted((ROOT / ".github/workflows").glob("*.yml")) for problem in problems(path, commands)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
