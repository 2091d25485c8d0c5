"""Pages from the sources: the Python package, the C++ headers, the tests that show a rule."""

import importlib
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

# What only the front end uses.
INTERNAL = "Trace, Loc, Value, Variable, LocalArray, ArrayArgument, Op"
ROOT = Path(__file__).resolve().parent.parent
HEADERS = ROOT / "include/costate"

sys.path.append(str(ROOT / "tools"))
import check_rules


def is_there(name):
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def show_static_methods(module):
    """Those of nanobind do not look like functions to autodoc."""
    for cls in [one for one in vars(module).values() if isinstance(one, type)]:
        for name, thing in list(vars(cls).items()):
            if type(thing).__name__ == "nb_func" and not name.startswith("_"):
                def stand_in(*args):
                    pass
                stand_in.__name__, stand_in.__doc__ = name, thing.__doc__
                setattr(cls, name, staticmethod(stand_in))


class PythonModule(SphinxDirective):
    """`{python-module} NAME`: what autodoc finds, or nothing where the package is not built."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        if not is_there(name):
            return [nodes.paragraph(text=f"{name} was not built when this page was made.")]
        show_static_methods(importlib.import_module(name))
        # Names of its own only: what `costate` offers again is described there.
        index = "" if name in ("costate", "costate._core") else "   :no-index:\n"
        if name == "costate._core":
            index = f"   :exclude-members: {INTERNAL}\n"
        return self.parse_text_to_nodes(f"```{{eval-rst}}\n.. automodule:: {name}\n{index}```\n")


def comment_of(header):
    """The comment at the beginning of a header."""
    lines = []
    for line in header.read_text().splitlines():
        if line.startswith("///"):
            lines.append(line[3:].strip())
        elif lines:
            break
    text = " ".join(lines).split("  ")[0]
    return re.split(r"(?<=[.?:])\s", text)[0].rstrip(":")


class CppHeaders(SphinxDirective):
    """`{cpp-headers}`: a table of the public headers with what they say of themselves."""

    def run(self):
        rows = [f"| `costate/{header.name}` | {comment_of(header)} |" for header in sorted(HEADERS.glob("*.h"))]
        return self.parse_text_to_nodes("\n".join(["| Header | |", "|---|---|", *rows]) + "\n")


class RulesAndTests(SphinxDirective):
    """`{rules-and-tests}`: which tests are marked with which rule of the semantics."""

    def run(self):
        return self.parse_text_to_nodes("\n".join(check_rules.table()) + "\n")


def as_plain_text(app, what, name, thing, options, lines):
    """Docstrings are plain text: code between backticks, examples indented."""
    # Autodoc takes the examples of a module for the indentation of all of its text.
    text = thing.__doc__ if what == "module" and thing.__doc__ else "\n".join(lines)
    paragraphs, made = text.strip("\n").split("\n\n"), []
    for paragraph in filter(str.strip, paragraphs):
        if all(line.startswith("    ") for line in paragraph.splitlines()):
            made += ["::", "", *paragraph.splitlines(), ""]
        else:
            made += [*(prose(line.strip()) for line in paragraph.splitlines()), ""]
    lines[:] = made


def prose(line):
    code = re.split(r"(`+[^`]+`+)", line)
    return "".join(f"\\ ``{part.strip('`')}``\\ " if i % 2 else re.sub(r"([\\*_|`])", r"\\\1", part)
                   for i, part in enumerate(code))


def without_any(app, what, name, thing, options, signature, returned):
    """`Any` says nothing to a reader."""
    kept = signature and re.sub(r": (~?typing\.)?Any\b(?! \|)", "", signature)
    return kept, None if returned and returned.endswith("Any") else returned


def setup(app):
    app.add_directive("python-module", PythonModule)
    app.add_directive("cpp-headers", CppHeaders)
    app.add_directive("rules-and-tests", RulesAndTests)
    app.connect("autodoc-process-docstring", as_plain_text)
    app.connect("autodoc-process-signature", without_any)
    return {"parallel_read_safe": True}
