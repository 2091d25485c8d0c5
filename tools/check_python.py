#!/usr/bin/env python3
"""Checks the imports of the Python package: each goes to the same layer or to one below, no modules import each other in a
circle, and none is imported inside of a function but for packages that may be missing."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "python"
#: Bottom up; a module belongs to the longest name that it begins with.
LAYERS = [
    ["errors", "absent", "_logging"],
    ["lang.syntax"],
    ["lang.base"],
    ["lang.values"],
    ["lang.data"],
    ["lang.analysis"],
    ["interop"],
    ["lang.trace"],
    ["lang.launch"],
    ["ad"],
    ["interop.autograd", "interop.torch"],
    ["algorithms", "graph", "math", "profiler", "tools", "types"],
    ["lang.compat"],
    ["lang", ""],
]
OPTIONAL = {"PIL", "cupy", "jax", "matplotlib", "numba", "torch", "tqdm"}


def modules():
    """{name below `costate`: (file, tree)}"""
    found = {}
    for file in sorted((ROOT / "costate").rglob("*.py")):
        parts = file.relative_to(ROOT / "costate").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = file, ast.parse(file.read_text())
    return found


def layer_of(name):
    ranks = [(len(one), rank) for rank, layer in enumerate(LAYERS) for one in layer
             if one in ("", name) or name.startswith(one + ".")]
    return max(ranks)[1]


class Imports(ast.NodeVisitor):
    """(what is imported, whether in a function, line) of a module."""

    def __init__(self, name, file, known):
        self.package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        self.known, self.found, self.depth = known, [], 0

    def visit_FunctionDef(self, node):
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_Import(self, node):
        self.found += [(one.name, self.depth > 0, node.lineno) for one in node.names]

    def visit_ImportFrom(self, node):
        base = node.module or ""
        if node.level:
            parts = ["costate", *filter(None, self.package.split("."))]
            base = ".".join([*parts[:len(parts) - node.level + 1], *filter(None, [node.module])])
        for one in node.names:
            inner = f"{base}.{one.name}"
            is_module = inner.removeprefix("costate.") in self.known or inner == "costate._core"
            self.found.append((inner if is_module else base, self.depth > 0, node.lineno))


def is_optional(name, imports):
    """Whether a module may be missing, or imports one that may be."""
    if name.partition(".")[0] in OPTIONAL:
        return True
    if name != "costate" and not name.startswith("costate."):
        return False
    return any(is_optional(one, imports) for one, local, _ in imports.get(name.removeprefix("costate."), ()) if not local)


def circles(edges):
    """Modules that reach themselves, each with the way back."""
    done = set()

    def search(name, path):
        if name in path:
            yield path[path.index(name):]
        elif name not in done:
            for other in sorted(edges[name]):
                yield from search(other, [*path, name])
            done.add(name)
    for name in sorted(edges):
        yield from search(name, [])


def problems():
    known = modules()
    imports = {}
    for name, (file, tree) in known.items():
        visitor = Imports(name, file, known)
        visitor.visit(tree)
        imports[name] = visitor.found
    edges = {name: set() for name in known}
    for name, found in imports.items():
        for target, local, line in found:
            place = f"{known[name][0].relative_to(ROOT.parent)}:{line}"
            ours = target.removeprefix("costate.") if target.startswith("costate.") else "" if target == "costate" else None
            if local and not is_optional(target, imports):
                yield f"{place}: `{target}` is imported inside of a function"
            if ours in known and ours != name:
                edges[name].add(ours)
                if layer_of(ours) > layer_of(name):
                    yield f"{place}: `{target}` is of a layer above"
    for circle in circles(edges):
        yield f"modules import each other: {' -> '.join([*circle, circle[0]])}"


if __name__ == "__main__":
    wrong = list(problems())
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)
