#!/usr/bin/env python3
"""Checks what CONTRIBUTING says of code: it is formatted, functions are short,
and exceptions start where users call."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 60  # lines of a function
# Lists with a line or two for each thing of a kind. Tests are lists of cases, too.
LISTS = {
    "python/bindings/arrays.cpp": "bindArrays",
    "python/bindings/errors.cpp": "bindErrors",
    "python/tests/steps/kernels.py": "__init__",
    "src/conversion/LLVMToSPIRV/ExpandIntrinsics.cpp": "expand",
    "src/interpreter/Scalars.cpp": "scalarOperations",
}
# What users call, the tracer from inside of their code; a handler of LLVM's.
THROWS = ("src/api/", "src/mpi/", "src/syntax/", "src/compiler/CompilerMemory.cpp")
SKIPPED = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/|^\s*#(?:[^\n]*\\\n)*[^\n]*', re.S | re.M)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")


def files(*endings):
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name.endswith(endings) and (ROOT / name).is_file()]


def functions_of_cpp(text):
    """(head, first line, number of lines) of each; what stands inside of one belongs to it."""
    text = SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    scopes, function, begin = [], None, 0
    for at, character in ((found.start(), found[0]) for found in re.finditer(r"[;{}]", text)):
        if character == "{":
            head = re.sub(r"template\s*<[^<>]*>", "", text[begin:at]).strip()
            if function is None and not SCOPE.search(head.split("(")[0]):
                function = head, text.count("\n", 0, at) + 1, len(scopes)
            scopes.append(at)
        elif character == "}" and scopes:
            scopes.pop()
            if function and function[2] == len(scopes):
                yield function[0], function[1], text.count("\n", 0, at) + 2 - function[1]
                function = None
        begin = at + 1


def functions_of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def long_functions():
    for name in files(".cpp", ".h", ".py"):
        if "Test" in name or name.startswith("test/"):
            continue
        text = (ROOT / name).read_text()
        found = functions_of_python(text) if name.endswith(".py") else functions_of_cpp(text)
        for head, line, length in found:
            is_list = name in LISTS and LISTS[name] in head
            if length > LONGEST and not is_list:
                yield f"{name}:{line}: {length} lines in a function"


def misplaced_exceptions():
    for name in files(".cpp", ".h"):
        if name.startswith("src/") and not name.startswith(THROWS) and not name.endswith("Test.cpp"):
            for number, line in enumerate((ROOT / name).read_text().split("\n"), 1):
                if re.search(r"\bthrow \w", line.split("//")[0]):
                    yield f"{name}:{number}: a failure below src/api is a Result, not an exception"


def unformatted():
    done = subprocess.run(["clang-format-22", "--dry-run", "-Werror", *files(".cpp", ".h")], cwd=ROOT,
                          capture_output=True, text=True)
    places = re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, re.M)
    return [f"{name}: is not formatted; run ./dev format" for name in dict.fromkeys(places)]


def main():
    problems = [*long_functions(), *misplaced_exceptions(), *unformatted()]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
