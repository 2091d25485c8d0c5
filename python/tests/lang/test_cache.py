"""Compiled kernels that one process leaves to the next."""

import os
import subprocess
import sys

import pytest

import costate as qd

PROGRAM = """{above}
import json, sys
import costate as qd
from costate import _core

qd.init(arch={arch}, default_fp=qd.f64, debug=True, offline_cache={cached}, offline_cache_file_path={folder!r})

@qd.kernel
def relax(n: qd.types.NDArray[qd.i32, 1], x: qd.types.NDArray[qd.f64, 1], y: qd.types.NDArray[qd.f64, 1]):
    for i in range(x.shape[0]):
        v = x[i]
        k = 0
        while k < n[i]:
            v = 0.5 * (v + 2.0 / v)
            k += 1
        y[i + n[0]] = qd.sin(v)

n, x, y = qd.ndarray(qd.i32, 4), qd.ndarray(qd.f64, 4, needs_grad=True), qd.ndarray(qd.f64, 4, needs_grad=True)
for i in range(4):
    n[i], x[i] = i, 1.5 + i
relax(n, x, y)
y.grad.fill(1)
relax.grad(n, x, y)
values = [x.grad[i].hex() for i in range(4)] + [y[i].hex() for i in range(4)]
n[0] = 1
try:
    relax(n, x, y)
    qd.sync()
    error = ""
except qd.QuadrantsAssertionError as failure:
    error = str(failure)
seen = _core.cache_statistics()
print(json.dumps([values, error, seen.compiled, seen.loaded, seen.folder]))
"""


@pytest.fixture
def run(tmp_path):
    """Runs the program in a process of its own: its values, error and counts."""
    import json

    def process(above="", cached=True, **environment):
        script = tmp_path / "program.py"
        arch = "qd.simt" if os.environ.get("COSTATE_DEVICE") == "simt" else "qd.cpu"
        script.write_text(PROGRAM.format(above=above, arch=arch, cached=cached,
                                         folder=str(tmp_path / "cache")))
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("COSTATE_CACHE")}
        done = subprocess.run([sys.executable, script], env=dict(inherited, **environment),
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return process


def line_in(error):
    return error.split("program.py:")[1].split(":")[0].split(",")[0].split()[0].rstrip(")")


def test_second_process_compiles_nothing(run, tmp_path):
    values, error, compiled, loaded, folder = run()
    assert compiled > 0 and loaded == 0 and folder == str(tmp_path / "cache")
    assert "program.py" in error
    assert run() == [values, error, 0, compiled, folder]


OBSERVED = """
import sys
import costate as qd
qd.init(arch=qd.cpu)

@qd.kernel(fastcache=True)
def double(x: qd.Tensor):
    for i in range(x.shape[0]):
        x[i] *= 2

@qd.kernel
def silent(x: qd.types.ndarray()):
    for i in range(x.shape[0]):
        x[i] += 1

x, y = qd.ndarray(qd.f32, int(sys.argv[1])), qd.field(qd.f32, 4)
assert not double._primal.src_ll_cache_observations.cache_key_generated
if "field" in sys.argv:
    double(y)
else:
    double(x)
    silent(x)
seen = double._primal.src_ll_cache_observations
assert seen.cache_validated == seen.cache_loaded and seen.cache_stored == (seen.cache_key_generated and not seen.cache_loaded)
assert not silent._primal.src_ll_cache_observations.cache_key_generated
assert not double._primal.fe_ll_cache_observations.cache_hit
print(int(seen.cache_key_generated), int(seen.cache_loaded))
"""


def test_kernels_with_fastcache_tell_what_the_cache_had(tmp_path):
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("COSTATE_CACHE")}
    (tmp_path / "observed.py").write_text(OBSERVED)

    def observed(*arguments):
        done = subprocess.run([sys.executable, tmp_path / "observed.py", *arguments], capture_output=True, text=True,
                              env=dict(inherited, QD_OFFLINE_CACHE_FILE_PATH=str(tmp_path / "cache")))
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert [observed("4"), observed("5"), observed("6", "field"), observed("6", "field")] == [
        ["1", "0"], ["1", "1"], ["0", "0"], ["0", "0"]]


def test_kernel_that_moves_takes_its_lines_along(run):
    values, error, compiled, _, folder = run()
    moved = run(above="# one\n# two")
    assert moved[0] == values and moved[2:] == [0, compiled, folder]
    assert int(line_in(moved[1])) == int(line_in(error)) + 1


def test_it_can_be_switched_off(run, tmp_path):
    for found in (run(cached=False), run(COSTATE_CACHE="0")):
        assert found[2:] == [0, 0, ""]
        assert not (tmp_path / "cache").exists()


def test_options_of_init(tmp_path, monkeypatch):
    with monkeypatch.context() as without:
        for name in [one for one in os.environ if one.startswith("COSTATE_CACHE")]:
            without.delenv(name)
        qd.init(arch=qd.cpu, offline_cache_file_path=str(tmp_path), offline_cache_max_size_of_files=1 << 20)
        assert qd._core.cache_statistics().folder == str(tmp_path)
    qd.init(arch=qd.cpu)
