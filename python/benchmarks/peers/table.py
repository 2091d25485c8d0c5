"""The results of a run as tables of a page; `python table.py FILE` prints those of a kept one."""

import json
import re
import sys

import cases

WORDS = {"right": "right", "wrong": "**wrong**", "error": "error", "crash": "**crash**", "cannot": "-"}


def least(answers, *keys):
    """The least times under `keys`, of both clocks; or the error."""
    found = []
    for answer in answers:
        if "error" in answer:
            return answer["error"]
        value = answer["result"]
        for key in keys:
            value = value.get(key)
        if value is not None:
            found.append(value)
    return [min(times) for times in zip(*found)] if found else None


def show(times, unit):
    """The time of the processor, and in parentheses that of the clock on the wall."""
    if times is None:
        return ""
    if isinstance(times, str):
        return "failed: " + times[:80]
    scale = {"µs": 1e6, "ms": 1e3, "s": 1}[unit]
    return "{} ({})".format(*(f"{t * scale:.3g}" if t * scale < 100 else f"{t * scale:.0f}" for t in reversed(times)))


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def head(*cells):
    return [row(*cells), "|" + "---|" * len(cells)]


def versions(result):
    """Of each system, and of its Python."""
    names = []
    for system, parts in result["answers"].items():
        found = [f"{a['version']} (Python {a['python']})" for answers in parts.values() for a in answers if "version" in a]
        names.append(f"{system} {found[0] if found else '?'}")
    names += [f"{system}: no wheel ({why})" for system, why in result["missing"].items()]
    return ", ".join(names)


def times(result):
    systems = result["answers"]
    lines = head("", *systems)
    lines.append(row("launch, four arrays, µs",
                     *(show(least(p["launch"], "call"), "µs") for p in systems.values())))
    if any(least(p["launch"], "recorded") is not None for p in systems.values()):
        lines.append(row("the same, recorded once, µs",
                         *(show(least(p["launch"], "recorded"), "µs")
                           for p in systems.values())))
    for part, words in (("cold", "nothing kept"), ("cached", "compiled before")):
        for key, what in (("import", "import"), ("primal", "first launch"), ("gradient", "first gradient")):
            if part == "cached" and key == "import":
                continue
            name = what if key == "import" else f"{what}, {words}"
            lines.append(row(f"{name}, s", *(show(least(p[part], key), "s") for p in systems.values())))
    return lines


BODIES = {"decay": "`v = 0.95 * v + 0.01`", "hover": "`v = v * sin(v) + 0.7`", "swing": "`v = v * sin(v)`"}


def recurrences(result):
    """A column for each way of each system: milliseconds of primal and gradient, of the processor."""
    rows, columns, errors = {}, [], []
    for system, parts in result["answers"].items():
        for answer in parts["recurrence"]:
            if "error" in answer:
                errors.append(f"{system}: {answer['error']}")
            for one in answer.get("result", []):
                column = f"{system}, {one['way']}" if one["way"] else system
                if column not in columns:
                    columns.append(column)
                row_of = rows.setdefault((one["body"], one["dtype"], one["lengths"]), {})
                before = row_of.setdefault(column, one)
                for what in ("primal", "gradient"):
                    before[what] = [min(pair) for pair in zip(before[what], one[what])]
    lines = head("body", "type", "iterations", *columns)
    for body in BODIES:
        for (_, dtype, lengths), found in sorted((item for item in rows.items() if item[0][0] == body),
                                                 key=lambda item: item[0][1]):
            cells = (pair(found[column]) if column in found else "" for column in columns)
            lines.append(row(BODIES[body], dtype, lengths, *cells))
    return lines + errors


def pair(one):
    """`2.1 / 3.4`: milliseconds of primal and gradient; and whether the gradient is wrong."""
    text = " / ".join(f"{1e3 * one[what][1]:.3g}" for what in ("primal", "gradient"))
    return text if one["verdict"] == "right" else f"{text}, {one['verdict']}"


def verdict(rows, case):
    """A word for all ways that were tried."""
    found = [one for one in rows if one["case"] == case]
    if not found:
        return ""
    word = WORDS[found[0]["verdict"]]
    if len(found) > 1 and found[-1]["verdict"] == "right":
        word += f" (right {found[-1]['way']})"
    return word


TRACKERS = {"warp": "NVIDIA/warp", "taichi": "taichi-dev/taichi", "slang": "shader-slang/slang",
            "slangpy": "shader-slang/slangpy", "clad": "vgvassilev/clad", "jax": "jax-ml/jax",
            "Enzyme": "EnzymeAD/Enzyme", "Reactant": "EnzymeAD/Reactant.jl"}


def linked(source):
    """`warp#1694, #1740` as links to these issues."""
    name = re.match(r"(\w+)#", source)
    if not name or name[1] not in TRACKERS:
        return source
    tracker = f"https://github.com/{TRACKERS[name[1]]}/issues"
    return re.sub(r"\w*#(\d+)", lambda m: f"[{m[0]}]({tracker}/{m[1]})", source)


def conformance(result):
    rows = {system: parts["conformance"][0].get("result", [])
            for system, parts in result["answers"].items()}
    lines = head("program", "from", *rows)
    counted = {case.name for case in cases.CASES if case.is_counted}
    for case in (case for case in cases.CASES if case.is_counted):
        lines.append(row(case.title, linked(case.source), *(verdict(found, case.name) for found in rows.values())))
    for name, verdicts in (("right", ["right"]), ("an error", ["error"]), ("wrong without an error", ["wrong"]),
                           ("the process ends", ["crash"]), ("cannot be written so", ["cannot"])):
        counts = [sum(one["verdict"] in verdicts and not one["way"] for one in found if one["case"] in counted) for found in rows.values()]
        lines.append(row(f"**{name}**", f"of {len(counted)}", *counts))
    return lines


def grids(result):
    """The largest difference of the grid operation's gradient, for each way to write its inner loop."""
    rows = {system: {one["case"]: one for one in parts["conformance"][0].get("result", []) if not one["way"]}
            for system, parts in result["answers"].items()}
    lines = head("colliders", *rows)
    for name, loop in cases.GRIDS.items():
        lines.append(row(loop, *(off(found.get(name)) for found in rows.values())))
    return lines


def off(one):
    if one is None:
        return ""
    if one["error"] is None:
        return WORDS[one["verdict"]]
    return f"{one['error']:.1g}" if one["verdict"] == "right" else f"**{one['error']:.3g}**"


def failures(result):
    lines = head("program", "system", "what it says or gives")
    for system, parts in result["answers"].items():
        for one in parts["conformance"][0].get("result", []):
            if one["verdict"] != "right" and one["text"] and not one["way"]:
                title = next(c.title for c in cases.CASES if c.name == one["case"])
                text = re.sub(r"""(?<=[ "'])/\S*/""", "", one["text"])  # folders
                lines.append(row(title, system, text[:160].replace("|", "\\|")))
    return lines


def page(result):
    of = {part for answers in result["answers"].values() for part, found in answers.items() if found}
    parts = {"": [f"{result['cores']} cores of {result['processor']}; {versions(result)}."],
             "Launches and first calls": times(result) if "launch" in of else [],
             "Recurrences": recurrences(result) if "recurrence" in of else [],
             "Which gradients are right?": conformance(result) if "conformance" in of else [],
             "The grid operation": grids(result) if "conformance" in of else [],
             "What they say": failures(result) if "conformance" in of else []}
    return "\n\n".join("\n".join([f"## {title}", "", *lines] if title else lines)
                       for title, lines in parts.items() if lines)


if __name__ == "__main__":
    print(page(json.load(open(sys.argv[1]))))
