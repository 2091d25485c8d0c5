#!/usr/bin/env python3
"""Checks the texts of the tree: no paths of one machine, no package hosts, no
tabs in sources, and no dead links between documents."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Spelled in pieces, so that this file does not find itself.
FORBIDDEN = re.compile("|".join([
    r"(?<![\w.])/" + r"work/", r"/tmp" + r"/build", r"/home" + r"/\w", r"/root" + r"/",
    r"deb\.debian" + r"\.org", r"security\.debian" + r"\.org", r"pypi" + r"\.org",
    r"files\.python" + r"hosted", r"apt\." + r"llvm\.org"]))
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.M | re.S)
EXEMPT = {"LICENSE"}


def files():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name and name not in EXEMPT]


def text_of(path):
    try:
        return path.read_text()
    except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
        return ""


def check(path, problems):
    name = path.relative_to(ROOT)
    text = text_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        if FORBIDDEN.search(line):
            problems.append(f"{name}:{number}: names a place of one machine: {line.strip()}")
        if "\t" in line and path.suffix in (".cpp", ".h", ".td", ".py"):
            problems.append(f"{name}:{number}: contains a tab")
    if path.suffix == ".md":
        for link in LINK.findall(CODE.sub("", text)):
            if not (path.parent / link).exists():
                problems.append(f"{name}: link to {link}, which does not exist")


def main():
    problems = []
    for path in files():
        check(path, problems)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
