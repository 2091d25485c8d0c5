"""Programs outside the tree, against an installed Costate.

Each file of test/external is compiled with both compilers against a prefix
that `cmake --install` has filled, and run.
"""

import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from report import Counts

ALL_ERRORS = {"clang++-22": "-ferror-limit=0", "g++": "-fmax-errors=0"}
# Of a message: an error, or the use that led to one in a header.
ERROR = r".*(?:\berror: |requested here|required from here)"


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


def pkg_config(root, prefix, counts):
    """The same program, by what `pkg-config costate` says in a tree that was moved since it was installed."""
    if not shutil.which("pkg-config"):
        counts.skips("pkg-config", "(not installed)")
        return
    moved = prefix / "moved"
    for part in ("include", "lib"):
        shutil.copytree(prefix / part, moved / part, symlinks=True)
    asked = call(["pkg-config", "--cflags", "--libs", "costate = 0.1.0"],
                 env=dict(os.environ, PKG_CONFIG_PATH=str(moved / "lib/pkgconfig")))
    program = prefix / "relax-pkg-config"
    compiled = call(["g++", "-std=c++20", root / "test/external/relax.cpp", *asked.stdout.split(),
                     f"-Wl,-rpath,{moved}/lib", "-o", program])
    if asked.returncode or compiled.returncode or str(moved) not in asked.stdout:
        counts.fails("pkg-config: build", asked.stdout + asked.stderr + compiled.stderr)
    else:
        counts.check("pkg-config: run", call([program], timeout=300))


def compile_text(text, compiler, trial, prefix):
    """Whether `text` compiles, the lines that its errors name or come from, and
    what the compiler prints."""
    trial.write_text(text)
    compiled = call([compiler, "-std=c++20", "-fsyntax-only", "-w", ALL_ERRORS[compiler], trial,
                     f"-I{prefix}/include"])
    named = re.findall(rf"^{re.escape(str(trial))}:(\d+):{ERROR}", compiled.stderr, re.M)
    return compiled.returncode == 0, {int(line) for line in named}, compiled.stderr


def must_not_compile(source, compiler, prefix, counts):
    """Every line of `source` that starts with `// refused:` stands for a
    program of its own that must not compile; the file as it is must. One that
    an error of all of them together names is not compiled by itself."""
    lines = source.read_text().splitlines()
    cases = [at for at, line in enumerate(lines) if line.strip().startswith("// refused:")]

    def compiled(chosen):
        text = "\n".join(line.replace("// refused:", "") if at in chosen else line
                         for at, line in enumerate(lines))
        return compile_text(text, compiler, prefix / f"{source.stem}-{compiler}.cpp", prefix)

    def check(what, right, errors):
        if right:
            counts.passes()
        else:
            counts.fails(f"{source.name} with {compiler}: {what}", errors)

    whole, _, errors = compiled([])
    check("the whole", whole, errors)
    _, named, _ = compiled(cases)
    for case in cases:
        check(lines[case], case + 1 in named or not compiled([case])[0], "it is accepted")


def check_sources(root, compiler, prefix):
    counts = Counts()
    for source in sorted((root / "test/external").glob("*.cpp")):
        if source.stem.startswith("refused"):
            must_not_compile(source, compiler, prefix, counts)
        else:
            build_and_run(source, compiler, prefix, counts)
    return counts


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
        pkg_config(root, prefix, counts)
        with ThreadPoolExecutor() as pool:
            for found in pool.map(lambda compiler: check_sources(root, compiler, prefix), ALL_ERRORS):
                counts.add(found)
    return counts
