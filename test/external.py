"""Programs outside the tree, against an installed Costate.

Each file of test/external is compiled with both compilers against a prefix
that `cmake --install` has filled, and run.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from report import Counts

COMPILERS = ("clang++-22", "g++")


def call(command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True,
                          text=True, **options)


def build_and_run(source, compiler, prefix, counts):
    name = f"{source.name} with {compiler}"
    program = prefix / f"{source.stem}-{compiler}"
    compiled = call([compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", source,
                     f"-I{prefix}/include", f"-L{prefix}/lib", "-lcostate",
                     f"-Wl,-rpath,{prefix}/lib", "-o", program])
    if compiled.returncode != 0:
        counts.fails(f"{name}: compile", compiled.stdout + compiled.stderr)
        return
    counts.check(f"{name}: run", call([program], timeout=300, cwd=prefix))


def find_package(root, prefix, counts):
    """A CMake project that says `find_package(costate)`."""
    build = prefix / "project"
    configured = call(["/usr/bin/cmake", "-G", "Ninja", "-S", root / "test/external", "-B", build,
                       f"-DCMAKE_PREFIX_PATH={prefix}"])
    built = call(["/usr/bin/cmake", "--build", build])
    if configured.returncode or built.returncode:
        counts.fails("find_package: build", configured.stderr + built.stdout)
    else:
        counts.check("find_package: run", call([build / "relax"], timeout=300))


def must_not_compile(source, compiler, prefix, counts):
    """Every line of `source` that starts with `// refused:` stands for a
    program of its own that must not compile; the file as it is must."""
    text = source.read_text()
    cases = [line for line in text.splitlines() if line.strip().startswith("// refused:")]
    for number, line in enumerate([None] + cases):
        trial = prefix / f"refused-{number}.cpp"
        trial.write_text(text.replace(line, line.replace("// refused:", ""), 1) if line else text)
        compiled = call([compiler, "-std=c++20", "-fsyntax-only", trial, f"-I{prefix}/include"])
        if (compiled.returncode != 0) == (line is not None):
            counts.passes()
        else:
            counts.fails(f"{source.name} with {compiler}: {line or 'the whole'}", compiled.stderr)


def run(root, build, preset):
    counts = Counts()
    if preset == "asan":
        counts.skips("all", "(other programs are not linked against a sanitized library)")
        return counts
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder)
        installed = call(["/usr/bin/cmake", "--install", build, "--prefix", prefix])
        if installed.returncode != 0:
            counts.fails("install", installed.stdout + installed.stderr)
            return counts
        headers = [str(p.relative_to(prefix)) for p in prefix.rglob("*.h")]
        if not headers or any(not h.startswith("include/costate/") for h in headers):
            counts.fails("installed headers", "\n".join(headers))
        find_package(root, prefix, counts)
        for compiler in COMPILERS:
            for source in sorted((root / "test/external").glob("*.cpp")):
                if source.stem.startswith("refused"):
                    must_not_compile(source, compiler, prefix, counts)
                else:
                    build_and_run(source, compiler, prefix, counts)
    return counts
