"""The table of seeded faults."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path


TIMES = "docs/design/seeded-faults.md"


@dataclass(frozen=True)
class Fault:
    name: str
    file: str
    text: str
    replacement: str
    by: str     # who can see it: "ir", "language", "simt", "recordings", "lanes", "python" or "tests"
    model: str  # the ablation of the model of the semantics, if it is one

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
                  row.get("by", "ir"), row.get("model", ""))
            for row in table["fault"]]


def rows(root):
    """The faults that the documentation says are found, by what and when."""
    return set(re.findall(r"^\| `([\w-]+)` \|", (root / TIMES).read_text(), re.M))


def problems(root, faults):
    found = [problem for fault in faults if (problem := fault.problem(root))]
    names = [fault.name for fault in faults]
    found += [f"{name}: occurs twice" for name in set(names) if names.count(name) > 1]
    found += [f"{name}: has no row in {TIMES}" for name in sorted(set(names) - rows(root))]
    found += [f"{TIMES} has a row for {name}, which is no fault" for name in sorted(rows(root) - set(names))]
    return found
