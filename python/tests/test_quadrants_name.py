"""Costate by the name of Quadrants: `python -m costate.quadrants`."""

import importlib.metadata
import os
import subprocess
import sys
import venv

import pytest

from costate import quadrants

pytestmark = pytest.mark.host


def run(target, *arguments, before=()):
    """What a Python prints that finds packages in a folder."""
    path = os.pathsep.join([str(target), *before, *sys.path])
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "packages"
    quadrants.main(["install", "--target", str(folder)])
    return folder


def versions(folder):
    return [one.version for one in importlib.metadata.distributions(name="quadrants", path=[str(folder)])]


def test_modules_are_those_of_costate(target):
    program = """
import quadrants as qd, costate
import quadrants.lang.impl, quadrants.algorithms, quadrants.lang.values.matrix
import costate.lang.compat.impl, costate.lang.matrix
from quadrants.lang import impl
from quadrants.types.primitive_types import f32
import quadrants.lang.matrix as matrix
print(qd is costate, impl is costate.lang.compat.impl, qd.algorithms is costate.algorithms, matrix is costate.lang.values.matrix,
      f32 is costate.f32, matrix.__spec__.name, qd.__spec__.name)
"""
    assert run(target, "-c", program) == ["True"] * 5 + ["costate.lang.values.matrix", "costate"]


def test_a_module_that_costate_has_imported_is_not_loaded_again(target):
    program = "import costate.ad.tape as ours; import quadrants.ad.tape as theirs, quadrants.ad; print(ours is theirs)"
    assert run(target, "-c", program) == ["True"]


def test_a_name_that_is_not_there(target):
    program = "try:\n    import quadrants.nonsense\nexcept ModuleNotFoundError as error:\n    print(error.name)"
    assert run(target, "-c", program) == ["quadrants.nonsense"]


def test_kernels_run(target):
    program = target / "program.py"
    program.write_text("""
import quadrants as qd
qd.init(arch=qd.cpu)
x = qd.field(qd.f32, 3)

@qd.kernel
def add():
    for i in x:
        x[i] += qd.math.sqrt(4.0)

add()
print(x[2])
""")
    assert run(target, str(program)) == ["2.0"]


def test_packages_see_the_version_that_they_require(tmp_path, monkeypatch):
    info = tmp_path / "simulator-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: simulator\nVersion: 2.0\nRequires-Dist: quadrants==7.8.9\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert quadrants.required_version() == "7.8.9"
    quadrants.main(["install", "--target", str(tmp_path)])
    assert versions(tmp_path) == ["7.8.9"]
    quadrants.main(["install", "--target", str(tmp_path), "--version", "8.0"])    # takes the place of the one before
    assert versions(tmp_path) == ["8.0"]
    program = "import importlib.metadata as m; print(m.version('quadrants'))"
    assert run(tmp_path, "-c", program) == ["8.0"]


def test_pip_is_content_and_uninstalls_it(tmp_path):
    pytest.importorskip("pip")
    venv.create(tmp_path / "venv")
    python = str(tmp_path / "venv" / "bin" / "python")
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    quadrants.main(["install", "--target", str(packages)])

    def pip(*arguments):
        return run(packages, "-m", "pip", "--python", python, *arguments)
    assert "quadrants" in pip("list")
    pip("check")
    pip("uninstall", "-y", "quadrants")
    assert list(packages.iterdir()) == []


def test_uninstalled(target):
    quadrants.main(["uninstall", "--target", str(target)])
    assert list(target.iterdir()) == []
    assert not quadrants.uninstall(target)


def test_another_package_of_this_name_stays(tmp_path):
    (tmp_path / "quadrants").mkdir()
    with pytest.raises(SystemExit, match="another package `quadrants`"):
        quadrants.main(["install", "--target", str(tmp_path)])
    info = tmp_path / "quadrants-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quadrants\nVersion: 1.0\n")
    (info / "INSTALLER").write_text("pip\n")
    with pytest.raises(SystemExit, match="pip uninstall quadrants"):
        quadrants.main(["install", "--target", str(tmp_path)])
    assert not quadrants.uninstall(tmp_path) and versions(tmp_path) == ["1.0"]
