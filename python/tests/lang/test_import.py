"""What `import costate` loads, and what it leaves for later."""

import subprocess
import sys

import costate as ti


def printed(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


def test_what_few_programs_need_is_loaded_when_it_is_asked_for():
    program = "import sys; import costate as ti; print(*('logging' in sys.modules, 'tqdm' in sys.modules, " \
              "'torch' in sys.modules)); ti.warn; print('logging' in sys.modules)"
    assert printed(program) == ["False", "False", "False", "True"]


def test_other_libraries_are_loaded_as_ever():
    assert printed("import sys; before = sys.getdlopenflags(); import costate; print(before == sys.getdlopenflags())") == ["True"]


def test_all_names_are_those_of_the_package():
    names = {}
    exec("from costate import *", names)
    assert {"kernel", "field", "info", "WARN", "capture", "Tape", "sin", "statistics"} <= set(names)
    assert all(getattr(ti, name) is names[name] for name in ti.__all__)
    assert ti.lang.misc.warning is ti.warning
