"""The table of seeded faults."""

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fault:
    name: str
    file: str
    text: str
    replacement: str
    by: str     # who can see it: "ir", "language", "simt", "recordings", "lanes", "python" or "tests"
    model: str  # the ablation of the model of the semantics, if it is one
    found: str  # the test, or the property of random programs, that finds it

    def apply(self, root):
        path = root / self.file
        path.write_text(path.read_text().replace(self.text, self.replacement))

    def problem(self, root):
        """Why the fault does not apply to the tree; empty if it does."""
        path = root / self.file
        count = path.read_text().count(self.text) if path.exists() else 0
        if count == 1:
            return ""
        return f"{self.name}: its text occurs {count} times in {self.file}, not once"


def load():
    table = tomllib.loads((Path(__file__).parent / "faults.toml").read_text())
    return [Fault(row["name"], row["file"], row["text"], row["with"],
                  row.get("by", "ir"), row.get("model", ""), row.get("found", ""))
            for row in table["fault"]]


def table(faults):
    """All of them for a reader, as lines of Markdown."""
    return ["| Fault | In | Looked for by | Found by |", "|---|---|---|---|",
            *(f"| `{fault.name}` | `{fault.file}` | {fault.by} | {fault.found or 'random programs'} |" for fault in faults)]


def problems(root, faults):
    found = [problem for fault in faults if (problem := fault.problem(root))]
    names = [fault.name for fault in faults]
    found += [f"{name}: occurs twice" for name in set(names) if names.count(name) > 1]
    found += [f"{fault.name}: `found` has to name the test that finds it"
              for fault in faults if fault.by == "tests" and not fault.found]
    return found
