#!/usr/bin/env bash
# check_wheel.sh WHEEL [PYTHON [TESTS]]: installs a wheel in a fresh virtual environment
# and runs the tests of the package there, all or those of a file.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
wheel=$1
limit=40000000
size=$(stat -c %s "$wheel")
[ "$size" -lt $limit ] || { echo "check_wheel.sh: $wheel has $size bytes" >&2; exit 1; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${2:-python3}" -m venv "$folder/venv"
python=$folder/venv/bin/python
"$python" -m pip -q --disable-pip-version-check install "$wheel[test]"
cp -r "$tree/python/tests" "$tree/python/benchmarks" "$folder"
cd "$folder"
ldd venv/lib/python*/site-packages/costate/_core*.so | grep -E 'LLVM|MLIR|not found' &&
  { echo "check_wheel.sh: the module needs libraries that the wheel does not have" >&2; exit 1; }
"$python" -c '
import subprocess, sys
program = "import time; start = time.process_time(); import costate; print(costate.__version__, time.process_time() - start)"
runs = [subprocess.check_output([sys.executable, "-c", program], text=True).split() for _ in range(5)]
seconds = min(float(seconds) for _, seconds in runs)
print(f"import of costate {runs[0][0]}: {seconds:.2f} s of processor time, the least of five")
assert seconds < 0.3, "too slow"'
COSTATE_DEVICE=cpu PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -q -p no:cacheprovider "${3:-tests}"
echo "$wheel: $((size / 1000)) kB, works in a fresh environment"
