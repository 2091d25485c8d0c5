#!/usr/bin/env python3
"""Checks that compilers find no header of a layer that theirs does not use, and that every source is compiled.

usage: check_layers.py [BUILD]

Each layer has an include folder of its own (`costate_layer` in
cmake/Costate.cmake), so what a file may include follows from its command. The
order of the layers, bottom up, is that of src/CMakeLists.txt.
"""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WITHOUT_LLVM = {"base", "code", "syntax", "runtime", "api", "mpi"}


def order():
    return re.findall(r"add_subdirectory\((\w+)\)", (ROOT / "src/CMakeLists.txt").read_text())


def include_folders(command):
    words = shlex.split(command)
    joined = [Path(word[2:]) for word in words if word.startswith("-I")]
    return joined + [Path(folder) for flag, folder in zip(words, words[1:]) if flag in ("-I", "-isystem")]


def problems_of(file, folders, layers, build):
    """Of a source file, a layer's or one of the bindings."""
    layer = file.parts[1] if file.parts[0] == "src" else "bindings"
    visible = {folder.name for folder in folders if folder.parent == build / "layers"}
    if ROOT / "src" in folders:
        yield f"{file}: all of src is in its include folders"
    below = set(layers[:layers.index(layer) + 1]) if layer in layers else set()
    for name in sorted(visible - below):
        yield f"{file}: {layer} sees the headers of {name}"
    if layer in WITHOUT_LLVM | {"bindings"} and any("llvm" in str(folder) for folder in folders):
        yield f"{file}: {layer} sees the headers of LLVM"


def is_checked(entry):
    """Whether it is part of a layer or of the bindings, not of the tests."""
    return " -o src/" in entry["command"] or " -o python/" in entry["command"]


def never_built(entries):
    """C++ of the tree that no target has; examples of users outside are built by their own tests."""
    built = {entry["file"] for entry in entries}
    listed = subprocess.run(["git", "ls-files", "*.cpp", ":!test/external"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [f"{file}: no target builds it" for file in listed.stdout.split() if str(ROOT / file) not in built]


def main():
    build = Path(sys.argv[1] if sys.argv[1:] else ROOT / "build/release").resolve()
    entries = json.loads((build / "compile_commands.json").read_text())
    layers, problems, checked = order(), never_built(entries), 0
    for entry in entries:
        if is_checked(entry):
            checked += 1
            problems += problems_of(Path(entry["file"]).relative_to(ROOT), include_folders(entry["command"]), layers, build)
    if checked < 100:
        problems.append(f"only {checked} files of layers in {build}/compile_commands.json")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
