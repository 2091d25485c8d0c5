#!/usr/bin/env python3
"""Checks that the folders of the tree depend on each other downwards only.

An `#include "layer/..."` is a dependency. MAY_USE is the drawing of
docs/design and ARCHITECTURE.md as a table; the public headers use only each
other and the standard library, and the bindings of Python use only those.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.M)
SOURCES = (".h", ".cpp", ".td", ".inc")
WITHOUT_LLVM = {"base", "syntax", "runtime", "api"}
LLVM = ("mlir/", "llvm/", "mlir-c/", "llvm-c/")

# Each layer and the layers right below it; what those use may be used as well.
MAY_USE = {
    "base": set(),
    "syntax": {"base"},
    "ir": {"base"},
    "lowering": {"syntax", "ir"},
    "autodiff": {"ir"},
    "sizing": {"ir"},
    "conversion": {"ir"},
    "runtime": {"base"},
    # `compiler` knows the runtime only as the border in runtime/KernelCode.h.
    "compiler": {"conversion", "sizing", "autodiff", "lowering", "runtime", "cache"},
    "cache": {"base"},
    "api": {"compiler", "cache", "runtime", "lowering"},
}


def reachable(layer):
    seen, todo = {layer}, [layer]
    while todo:
        for below in MAY_USE[todo.pop()] - seen:
            seen.add(below)
            todo.append(below)
    return seen


def includes(path):
    return INCLUDE.findall(path.read_text(errors="replace"))


def check_source(path, layer, problems):
    allowed = reachable(layer)
    for name in includes(path):
        target = name.split("/")[0]
        if name.startswith(LLVM) and layer in WITHOUT_LLVM:
            problems.append(f"{path.relative_to(ROOT)}: {layer} must not include {name}")
        if target in MAY_USE and "/" in name and target not in allowed:
            problems.append(f"{path.relative_to(ROOT)}: {layer} must not depend on {target} ({name})")


def check_public(path, problems):
    for name in includes(path):
        if "/" in name and not name.startswith("costate/"):
            problems.append(f"{path.relative_to(ROOT)}: a public header includes {name}")


def check_bindings(path, problems):
    for name in includes(path):
        if name.split("/")[0] in MAY_USE and "/" in name or name.startswith(LLVM):
            problems.append(f"{path.relative_to(ROOT)}: bindings use public headers, not {name}")


def is_test(path):
    return path.stem.endswith(("Test", "Benchmark")) or "test" in path.parts


def main():
    problems = []
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in SOURCES or is_test(path):
            continue
        layer = path.relative_to(ROOT / "src").parts[0]
        if layer not in MAY_USE:
            problems.append(f"{path.relative_to(ROOT)}: src/{layer} is no layer")
        else:
            check_source(path, layer, problems)
    for path in sorted((ROOT / "include").rglob("*.h")):
        check_public(path, problems)
    for path in sorted((ROOT / "python/bindings").iterdir()):
        check_bindings(path, problems)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
