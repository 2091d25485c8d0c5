#!/usr/bin/env python3
"""Checks the texts of the tree: no paths of one machine, no package hosts, no
tabs in sources, no words that the glossary has retired, and no dead links
between documents."""

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
GLOSSARY = ROOT / "docs/glossary.md"
PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def retired():
    """Words, and phrases, of the last table of the glossary."""
    table = GLOSSARY.read_text().split("## Words that are not used")[1]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")][2:]
    return [word.strip() for row in rows for word in row.split(",")]


WORDS = {word for word in retired() if " " not in word}
PHRASES = [word for word in retired() if " " in word]


def files():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name and name not in EXEMPT]


def text_of(path):
    try:
        return path.read_text()
    except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
        return ""


def retired_in(line):
    """The retired words of a line, also those that are parts of names."""
    found = {part.lower() for part in PARTS.findall(line)} & WORDS
    return sorted(found | {phrase for phrase in PHRASES if re.search(rf"\b{phrase}\b", line)})


def check(path, problems):
    name = path.relative_to(ROOT)
    text = text_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        if FORBIDDEN.search(line):
            problems.append(f"{name}:{number}: names a place of one machine: {line.strip()}")
        if "\t" in line and path.suffix in (".cpp", ".h", ".td", ".py"):
            problems.append(f"{name}:{number}: contains a tab")
        for word in retired_in(line) if path != GLOSSARY else []:
            problems.append(f"{name}:{number}: `{word}` is not used here, see docs/glossary.md")
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
