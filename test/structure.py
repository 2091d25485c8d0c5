"""The rules about the tree that a script can check."""

import subprocess
import sys
from pathlib import Path

from report import Counts

sys.path.append(str(Path(__file__).parent / "mutation"))
import faults


def run(root, build, preset):
    counts = Counts()
    for script, *of in (("check_layers.py", build), ("check_python.py",), ("check_operations.py",), ("check_tables.py",), ("check_rules.py",),
                        ("check_text.py",), ("check_style.py",), ("check_costs.py",), ("check_thread_local.py",), ("check_workflow.py",),
                        ("performance.py", "--check"), ("names.py", "--check")):
        counts.check(script, subprocess.run([sys.executable, root / "tools" / script, *of],
                                            capture_output=True, text=True))
    tables = root / "benchmark/cuda/compare_test.py"
    counts.check(tables.name, subprocess.run([sys.executable, "-B", tables], capture_output=True,
                                             text=True))
    wrong = faults.problems(root, faults.load())
    counts.check("faults.toml", subprocess.CompletedProcess([], len(wrong), "\n".join(wrong), ""))
    return counts
