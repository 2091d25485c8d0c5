"""Names what files need that libraries of the oldest systems do not have.

    python3 check_symbols.py FILE...

A FILE is a program, a library, a folder of them, or a wheel.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NM = "/usr/lib/llvm-22/bin/llvm-nm"
# Those of manylinux_2_34.
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "GCC": (7, 0, 0), "CXXABI": (1, 3, 13)}


def is_newer(version):
    library, _, number = version.partition("_")
    return library in NEWEST and tuple(map(int, number.split("."))) > NEWEST[library]


def too_new(binary):
    """The symbols for which libraries of the oldest systems would be too old."""
    text = subprocess.run([NM, "-D", "--undefined-only", "--quiet", binary], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in text.splitlines()]
    return [name for name in names if is_newer(name.rpartition("@")[2])]


def is_binary(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def problems(folder):
    for path in sorted(folder.rglob("*") if folder.is_dir() else [folder]):
        if path.is_file() and is_binary(path):
            yield from (f"{path.name}: {name}" for name in too_new(path))


def main(files):
    found = []
    for file in map(Path, files):
        if not zipfile.is_zipfile(file):
            found += problems(file)
            continue
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(file).extractall(folder)
            found += problems(Path(folder))
    print("\n".join(f"{line}: newer than the oldest systems, see cmake/older_libraries.c" for line in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
