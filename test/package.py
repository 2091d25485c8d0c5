"""What `./dev package` rests on: its build can be configured, the objects of this build link with nothing
but LLVM's static archives, and only what they use of them comes along."""

import subprocess
import sys
import tempfile
from pathlib import Path

from report import Counts

sys.path.append(str(Path(__file__).resolve().parent.parent / "tools/package"))
from check_symbols import too_new

LLVM = Path("/usr/lib/llvm-22")
LARGEST = 145_000_000  # with names, for CPUs, NVIDIA and AMD; everything that is in the archives has four times that


def configure(root, folder):
    return subprocess.run(["cmake", "--preset", "package", "-B", folder], cwd=root, capture_output=True, text=True)


def link(root, build, folder):
    objects = folder / "objects.txt"
    objects.write_text("".join(f"{path}\n" for path in sorted(build.rglob("*.o"))))
    library = folder / "libcostate-llvm.so"
    process = subprocess.run([root / "cmake/link_llvm.sh", objects, library, LLVM / "lib",
                              LLVM / "bin", "clang++-22"], capture_output=True, text=True)
    return library, process


def versions(library):
    """That of each exported symbol: without one, a driver with an LLVM of its own would get ours."""
    text = subprocess.run([LLVM / "bin/llvm-nm", "-D", "--defined-only", "--quiet", library],
                          capture_output=True, text=True, check=True).stdout
    return {name.partition("@@")[2] for line in text.splitlines()
            if (name := line.split()[-1]) and " A " not in line}


def run(root, build, preset):
    counts = Counts()
    if preset != "release":
        counts.skips("all", "(the package is made of release code)")
        return counts
    with tempfile.TemporaryDirectory() as name:
        counts.check("configure", configure(root, Path(name) / "build"))
        library, process = link(root, build, Path(name))
        counts.check("link", process)
        if process.returncode == 0 and (found := versions(library)) != {"COSTATE_LLVM"}:
            counts.fails("versions", f"of exported symbols: {found}")
        if process.returncode == 0 and (found := too_new(library)):
            counts.fails("older systems", f"do not have {found}: see cmake/older_libraries.c")
        if process.returncode == 0 and library.stat().st_size > LARGEST:
            counts.fails("size", f"libcostate-llvm.so has {library.stat().st_size} bytes; "
                         "does something name all targets or all dialects?")
    return counts
