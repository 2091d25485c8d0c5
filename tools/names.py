#!/usr/bin/env python3
"""Tables of the documentation that list what the code has: functions and their derivatives, names of the Python package,
and names of other systems that it lacks.

    names.py            writes them
    names.py --check    says whether they are not those of the code
"""

import argparse
import ast
import re
import sys

import generated

ROOT = generated.ROOT
OPERATIONS = "include/costate/detail/operations.def"
RULES = "src/autodiff/rules/MathRules.cpp"
PACKAGE = "python/costate/__init__.py"
DEVICES, RUNTIME = "src/api/Device.cpp", "python/costate/lang/base/runtime.py"
ABSENT = "python/costate/absent.py"

# What the names of a module are for, in the order of the table; modules with the same words share a row.
PURPOSES = {
    "costate.lang.base.runtime": "[devices](running-python.md), options, waits, counts",
    "costate.lang.base.streams": "[streams](running-graphs.md) and events",
    "costate.lang.launch.capture": "[graphs](running-graphs.md#graphs)",
    "costate.lang.launch.checkpoints": "graphs with conditions and checkpoints (K38, K40)",
    "costate.lang.syntax.graph_loops": "graphs with conditions and checkpoints (K38, K40)",
    "costate.lang.base.dtypes": "types of numbers",
    "costate.lang.data.field": "[fields](python.md#arrays)",
    "costate.lang.data.snode": "fields that are placed by hand",
    "costate.lang.data.ndarray": "ndarrays and tensors",
    "costate.lang.data.buffer_view": "parts of ndarrays (K33)",
    "costate.lang.data.struct": "structs",
    "costate.lang.trace.structs": "structs",
    "costate.lang.values.matrix": "[vectors and matrices](python.md#functions-and-values)",
    "costate.lang.values.decompositions": "decompositions and systems of equations",
    "costate.lang.compat.small_funcs": "decompositions and systems of equations",
    "costate.lang.launch.kernel": "[kernels](python.md)",
    "costate.lang.launch.perf_dispatch": "the fastest of several kernels (K35)",
    "costate.lang.trace.func": "[functions](python.md#functions-and-values) of kernels",
    "costate.lang.data.annotations": "[parameters](python.md#parameters)",
    "costate.lang.data.ranges": "[loops](python.md#loops)",
    "costate.lang.trace.directives": "hints, and checks when a kernel is compiled",
    "costate.lang.values.ops": "operations; the functions of floats stand in [a table of their own](language.md#functions-of-floats)",
    "costate.lang.trace.atomics": "updates of shared elements (A5 to A9)",
    "costate.lang.values.random": "random numbers",
    "costate.lang.trace.tiles": "[tiles](blocks.md#tiles) of warps",
    "costate.lang.trace.sparse": "[sparse fields](python.md#sparse-fields)",
    "costate.ad": "[derivatives](autodiff.md)",
    "costate": "modules",
    "costate.interop.torch": "[PyTorch](interop.md)",
    "costate._logging": "messages to the user",
}
# Names that the package gives itself.
OWN = {
    "costate": ("algorithms", "distributed", "graph", "linalg", "profiler", "sparse", "tools"),
    "costate.ad": ("Tape", "FwdMode", "clear_all_gradients", "grad_replaced", "grad_for", "no_grad"),
    "costate.lang.base.runtime": ("cache_statistics", "clear_cache", "cfg", "x86_64"),
    "costate.lang.data.field": ("AOS", "SOA"),
    "costate.lang.data.snode": ("indices",),
    "costate.lang.data.annotations": ("Template",),
    "costate.lang.values.ops": ("rgb_to_hex", "hex_to_rgb"),
}
NO_MODULES_OF_USERS = {"costate": ("absent", "lang")}
NOT_OF_USERS = {"volatile_load": "costate.lang.compat.small_funcs"}


# -- Functions and their derivatives -------------------------------------------

def functions():
    """(name, what it is) of each function of floats."""
    return re.findall(r'^COSTATE_FUNCTION\(\w+,\s*(\w+),.*"(.*)"\)$', (ROOT / OPERATIONS).read_text(), re.M)


RULE = re.compile(r"((?:^/// [^\n]*\n)*)^Factor (\w+)Rule\([^)]*\) \{(.*?)\}\n\n", re.M | re.S)
VALUES = (("operand(a)", "x"), ("result(a)", "y"), ("std::numbers::ln2", "ln 2"), ("std::numbers::ln10", "ln 10"),
          ("std::numbers::log2e", "log2(e)"), ("std::numbers::log10e", "log10(e)"))


def formula(name, comment, body):
    """What the comment in front of a rule says; else its expression."""
    if comment:
        return " ".join(line.removeprefix("///").strip() for line in comment.splitlines()).rstrip(".")
    found = re.search(r"return times\((.*)\);", body)
    text = found[1] if found else body
    for ours, words in VALUES:
        text = text.replace(ours, words)
    text = re.sub(r"(\w+)\.of<ir::(\w+)Op>\(\)", lambda found: f"{found[2].lower()}({found[1]})", text)
    if not found or re.search(r"::|->|\w\.\w*\(|\ba\b|[{};]", text):
        sys.exit(f"{RULES}: write the derivative of `{name}` in a comment of `///` in front of its rule")
    return f"`{text}`"


def derivatives():
    """(comment, body) of the rule of each function."""
    text = (ROOT / RULES).read_text()
    return {name: (comment, body) for comment, name, body in RULE.findall(text)}


def function_rows():
    known = derivatives()
    for name, doc in functions():
        yield [f"`{name}`", doc.rstrip("."), formula(name, *known[name])]


# -- Names of Python -----------------------------------------------------------

def imported():
    """The names that the package takes from each of its modules."""
    names = {}
    for node in ast.walk(ast.parse((ROOT / PACKAGE).read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.module or not node.module.startswith("costate"):
            continue
        public = [alias.asname or alias.name for alias in node.names if not (alias.asname or alias.name).startswith("_") and alias.name != "*"]
        if public:
            names.setdefault(node.module, []).extend(public)
    for module, more in OWN.items():
        names[module] += more
    return names


def name_rows():
    rows, known = {}, imported()
    if unknown := set(known) - set(PURPOSES) - {"costate.absent"}:
        sys.exit(f"tools/names.py: PURPOSES does not say what the names of {', '.join(sorted(unknown))} are for")
    for module, purpose in PURPOSES.items():
        kept = [name for name in known[module] if name not in NO_MODULES_OF_USERS.get(module, ()) and name not in NOT_OF_USERS]
        rows.setdefault(purpose, []).extend(dict.fromkeys(kept))
    return [[purpose, "`" + " ".join(names) + "`"] for purpose, names in rows.items()]


def absent_rows():
    values, reasons = {}, {}
    exec((ROOT / ABSENT).read_text(), values)  # it imports nothing
    for name, text in values["_INSTEAD"].items():
        reasons.setdefault(text, []).append(name)
    return [["`" + " ".join(names) + "`", text] for text, names in reasons.items()]


# -- Devices -------------------------------------------------------------------

def device_rows():
    """The kinds of devices of C++, with what Python calls them."""
    text = (ROOT / DEVICES).read_text().split("constexpr Kind kinds[]")[1].split("} // namespace")[0]
    kinds = [(name, note, "takesWhich" in rest) for name, note, rest in re.findall(r'\{"([a-z-]+)", "([^"]*)",(.*?)\}(?=,\n    \{"|\};)', text, re.S)]
    of_python = {}
    for arch, device in device_names().items():
        of_python.setdefault(device, []).append(f"`qd.{arch}`")
    for k, (name, note, takes_which) in enumerate(kinds):
        note = note.replace("(the same)", f"the same as `{kinds[k - 1][0]}`")
        yield [f"`{name}`" + (f", `{name}:WHICH`" if takes_which else ""), " ".join(of_python.get(name, [])), note.strip(" ()")]
    yield ["no device: an error", " ".join(of_python[None]), ""]


def device_names():
    for node in ast.parse((ROOT / RUNTIME).read_text()).body:
        if isinstance(node, ast.AnnAssign) and node.target.id == "_DEVICE":
            names = {one.arg: ast.literal_eval(one.value) for one in node.value.keywords}
            return {"cpu": "cpu"} | {arch: device for arch, device in names.items() if arch != "python"} | {"gpu": "gpu"}
    sys.exit(f"{RUNTIME}: there is no table `_DEVICE`")


# -- All of them ---------------------------------------------------------------

def texts():
    return {
        "docs/guide/language.md": {"functions": generated.table(["function", "", "derivative"], function_rows())},
        "docs/guide/devices.md": {"devices": generated.table(["device", "in Python", ""], device_rows())},
        "docs/guide/features.md": {"names": generated.table(["for", "names of `costate`"], name_rows()),
                                   "absent": generated.table(["name", "instead"], absent_rows())},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    generated.write(texts(), parser.parse_args().check, "tools/names.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
