"""The listings of the documentation, compiled and run.

A block marked "cpp run" is a program, or statements of one. All listings of a
page become one program; its argument says which of them runs. The blocks marked
"python run" of a page are one program in parts; "python run torch" needs a module
that may be missing. A block marked "output" after a listing is what that listing
prints.
"""

import json
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from report import Counts

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.M | re.S)
HOISTED = re.compile(r"^\s*#\s*include.*$|^using namespace costate;.*$", re.M)
PRELUDE = """#include <costate/costate.h>
#include <costate/syntax.h>
#include <cstdlib>
#include <iostream>
#include <vector>
"""
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize=vptr,function", "-shared-libsan"]


class Listing:
    def __init__(self, language, line, code, needs):
        self.language = language
        self.line = line
        self.code = code
        self.needs = needs
        self.output = None


def listings_of(page):
    text = page.read_text()
    found, last = [], None
    for match in FENCE.finditer(text):
        info = match[1].split()
        if info[:1] == ["output"] and last:
            last.output = match[2]
        elif info[1:2] == ["run"] and info[0] in ("cpp", "python"):
            last = Listing(info[0], text.count("\n", 0, match.start()) + 2, match[2], info[2:])
            found.append(last)
        else:
            last = None
    return found


def pages_with(language, root):
    files = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    pages = {page.relative_to(root): [one for one in listings_of(page) if one.language == language]
             for page in files}
    return {page: listings for page, listings in pages.items() if listings}


def as_function(page, number, listing):
    code = HOISTED.sub("", listing.code)
    place = f'#line {listing.line} "{page}"\n'
    if "int main(" in code:
        # A program may not call its `main`, so the one of a listing gets another name.
        code = code.replace("int main(", "void start(").replace("return 0;", "return;")
        return f"namespace n{number} {{\n{place}{code}\n}}\nvoid f{number}() {{ n{number}::start(); }}\n"
    return f"void f{number}() {{\n{place}{code}\n}}\n"


def program(page, listings):
    includes = {line for listing in listings for line in HOISTED.findall(listing.code)
                if "#" in line}
    parts = [PRELUDE, *sorted(line + "\n" for line in includes), "using namespace costate;\n"]
    parts += [as_function(page, i, listing) for i, listing in enumerate(listings)]
    calls = "".join(f"  case {i}: f{i}(); break;\n" for i in range(len(listings)))
    parts.append(f"int main(int, char **argv) {{\n  switch (std::atoi(argv[1])) {{\n{calls}  }}\n}}\n")
    return "".join(parts)


def compile_page(page, listings, build, preset, folder):
    name = str(page).replace("/", "-")
    source, binary = folder / f"{name}.cpp", folder / name
    source.write_text(program(page, listings))
    command = ["clang++-22", "-std=c++20", "-O1", source, "-I", "include", f"-L{build}/lib",
               "-lcostate", f"-Wl,-rpath,{build}/lib", "-fuse-ld=lld", "-o", binary]
    if preset == "asan":
        command += SANITIZE
    return subprocess.run(command, capture_output=True, text=True), binary


def run_listing(page, number, listing, binary, folder, counts):
    name = f"{page}:{listing.line}"
    # With a cache, as users have it.
    environment = dict(os.environ, COSTATE_CACHE="1", XDG_CACHE_HOME=str(folder))
    process = subprocess.run([binary, str(number)], capture_output=True, text=True,
                             timeout=300, cwd=folder, env=environment)
    if process.returncode == 0 and listing.output not in (None, process.stdout):
        counts.fails(name, f"prints\n{process.stdout}instead of\n{listing.output}")
    else:
        counts.check(name, process)


def run_page(page, listings, compiled, folder, counts):
    process, binary = compiled
    if process.returncode != 0:
        for listing in listings:
            counts.fails(f"{page}:{listing.line}", process.stderr)
        return
    for number, listing in enumerate(listings):
        run_listing(page, number, listing, binary, folder, counts)


def run_cpp(root, build, preset, counts):
    pages = pages_with("cpp", root)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        folder = Path(name)
        compiled = pool.map(lambda item: compile_page(*item, build, preset, folder), pages.items())
        for (page, listings), result in zip(pages.items(), compiled):
            run_page(page, listings, result, folder, counts)


def run_python_page(page, listings, python, build, counts):
    environment = dict(os.environ, PYTHONPATH=str(build / "python"), PYTHONDONTWRITEBYTECODE="1")
    runner = Path(__file__).with_name("listings_python.py")
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.run([python, runner, folder, page.name], capture_output=True, text=True,
                                 timeout=600, env=environment, input=json.dumps(
                                     [vars(one) for one in listings]))
    if process.returncode != 0:
        counts.fails(str(page), process.stdout + process.stderr)
        return
    for listing, (printed, error) in zip(listings, json.loads(process.stdout.splitlines()[-1])):
        name = f"{page}:{listing.line}"
        if error in listing.needs:
            counts.skips(name, f"(needs {error})")
        elif error:
            counts.fails(name, printed + error)
        elif listing.output not in (None, printed):
            counts.fails(name, f"prints\n{printed}instead of\n{listing.output}")
        else:
            counts.passes()


def has_package(python, build):
    environment = dict(os.environ, PYTHONPATH=str(build / "python"), PYTHONDONTWRITEBYTECODE="1")
    return python.exists() and subprocess.run([python, "-c", "from costate import kernel"],
                                              capture_output=True, env=environment).returncode == 0


def run_python(root, build, counts):
    python = root / ".venv/bin/python"
    pages = pages_with("python", root)
    if not has_package(python, build):
        for page in pages:
            counts.skips(str(page), "(the Python package is not built)")
        return
    for page, listings in pages.items():
        run_python_page(page, listings, python, build, counts)


def run(root, build, preset):
    counts = Counts()
    run_cpp(root, build, preset, counts)
    run_python(root, build, counts)
    return counts
