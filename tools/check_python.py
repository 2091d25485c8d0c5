#!/usr/bin/env python3
"""Checks the imports of the Python package: each goes to the same layer or to one below, no modules import each other in a
circle, and none is imported inside of a function but for packages that may be missing. Names for types alone, below
`TYPE_CHECKING`, import nothing when a program runs; their layers count all the same."""

import ast
import sys
from dataclasses import dataclass
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
    ["interop.autograd", "interop.jax", "interop.kept_calls", "interop.launches", "interop.operators", "interop.plan", "interop.torch", "jax"],
    ["algorithms", "distributed", "graph", "math", "profiler", "tools", "types"],
    ["lang.compat"],
    ["lang", "", "quadrants"],
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


@dataclass
class Import:
    target: str
    line: int
    local: bool        # inside of a function
    for_types: bool    # below `TYPE_CHECKING`


class Imports(ast.NodeVisitor):
    """The imports of a module."""

    def __init__(self, name, file, known):
        self.package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        self.known, self.found, self.depth, self.for_types = known, [], 0, False

    def visit_FunctionDef(self, node):
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_If(self, node):
        before, self.for_types = self.for_types, self.for_types or ast.unparse(node.test) == "TYPE_CHECKING"
        self.generic_visit(node)
        self.for_types = before

    def add(self, target, node):
        self.found.append(Import(target, node.lineno, self.depth > 0, self.for_types))

    def visit_Import(self, node):
        for one in node.names:
            self.add(one.name, node)

    def visit_ImportFrom(self, node):
        base = node.module or ""
        if node.level:
            parts = ["costate", *filter(None, self.package.split("."))]
            base = ".".join([*parts[:len(parts) - node.level + 1], *filter(None, [node.module])])
        for one in node.names:
            inner = f"{base}.{one.name}"
            is_module = inner.removeprefix("costate.") in self.known or inner == "costate._core"
            self.add(inner if is_module else base, node)


def is_optional(name, imports):
    """Whether a module may be missing, or imports one that may be."""
    if name.partition(".")[0] in OPTIONAL:
        return True
    if name != "costate" and not name.startswith("costate."):
        return False
    return any(is_optional(one.target, imports) for one in imports.get(name.removeprefix("costate."), ())
               if not (one.local or one.for_types))


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


def name_of(target):
    """The module of ours that is imported, without `costate`, or None."""
    if target == "costate":
        return ""
    return target.removeprefix("costate.") if target.startswith("costate.") else None


def problems():
    known = modules()
    imports = {}
    for name, (file, tree) in known.items():
        visitor = Imports(name, file, known)
        visitor.visit(tree)
        imports[name] = visitor.found
    edges = {name: set() for name in known}
    for name, found in imports.items():
        for one in found:
            place = f"{known[name][0].relative_to(ROOT.parent)}:{one.line}"
            if one.local and not is_optional(one.target, imports):
                yield f"{place}: `{one.target}` is imported inside of a function"
            ours = name_of(one.target)
            if ours not in known or ours == name:
                continue
            if layer_of(ours) > layer_of(name):
                yield f"{place}: `{one.target}` is of a layer above"
            if not one.for_types:
                edges[name].add(ours)
    for circle in circles(edges):
        yield f"modules import each other: {' -> '.join([*circle, circle[0]])}"


if __name__ == "__main__":
    wrong = list(problems())
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)
