"""What `import costate` loads, and what it leaves for later."""

import subprocess
import sys

import pytest

import costate as ti

pytestmark = pytest.mark.host


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


def test_names_of_quadrants_are_made_when_one_of_them_is_asked_for():
    made = "'costate.lang.compat.aliases' in sys.modules"
    for ask in ("import costate.lang.misc", "ti.lang.kernel", "from costate.lang import impl", "ti._lib.core",
                "import costate._lib.utils", "from costate.ad.clear import clear", "ti.types.primitive_types", "ti.math.mathimpl"):
        assert printed(f"import sys; import costate as ti; print({made}); {ask}; print({made})") == ["False", "True"], ask
    program = "import sys; import costate as ti; ti.kernel, ti.algorithms, ti.info, ti.cfg, ti.capture; hasattr(ti, '__path__'); " \
              f"print({made})"
    assert printed(program) == ["False"]


def test_a_module_with_two_names_is_one():
    program = "import costate.lang.matrix as a, costate.lang.values.matrix as b; print(a is b, a.__spec__.name, a.__name__)"
    assert printed(program) == ["True", "costate.lang.values.matrix", "costate.lang.values.matrix"]


def test_names_that_nobody_has():
    for name in ("nonsense", "lang.nonsense", "ad.nonsense", "math.nonsense", "types.nonsense"):
        program = f"import costate as ti\ntry:\n    ti.{name}\nexcept AttributeError as error:\n    print(error)"
        assert "nonsense" in " ".join(printed(program))
    assert printed("try:\n    import costate.nonsense\nexcept ModuleNotFoundError as error:\n    print(error.name)") == ["costate.nonsense"]


def test_launches_load_the_libraries_that_they_need(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import costate as ti
ti.init(arch=ti.cpu)
x = ti.field(ti.f32, 3)

@ti.kernel
def add():
    for i in x:
        x[i] += 1

add()
print(x[0], "sleef" in open("/proc/self/maps").read())
""")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1.0", "False"]
