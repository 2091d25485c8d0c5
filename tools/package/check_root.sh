#!/usr/bin/env bash
# check_root.sh PYTHON WHEEL...: installs the wheel that Debian's Python takes in a root folder
# that holds nothing but this Python and the libraries that it needs, runs the program of the
# README there, and compares what it prints. PYTHON has pip, and downloads NumPy.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
root=$tree/build/debian python=$1
shift

fail() {
  echo "check_root.sh: $*" >&2
  exit 1
}

apart=(/usr/bin/unshare --map-root-user --mount --pid --fork --mount-proc --root="$root")
/usr/bin/unshare --map-root-user --mount --pid --fork true || fail "no namespaces here, so nothing is checked"
"$tree/tools/debian/unpack.sh" amd64 "$root" python3 python3-venv libstdc++6 coreutils >"$root.log" 2>&1 ||
  fail "no root: $(tail -n 3 "$root.log")"

rm -rf "$root/wheels" "$root/env"
mkdir -p "$root"/{wheels,proc,tmp}
cp "$@" "$root/wheels"
"$tree/tools/package/readme_program.sh" "$root/tmp"

run() { env -i HOME=/tmp PATH=/usr/bin:/bin "${apart[@]}" --wd=/tmp "$@"; }
version=$(run /usr/bin/python3 -c 'import platform, sys; print("%d.%d" % sys.version_info[:2], *platform.libc_ver())')
"$python" -m pip -q --disable-pip-version-check download numpy --no-deps --only-binary :all: \
  --python-version "${version%% *}" --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 -d "$root/wheels" ||
  fail "no NumPy; it needs PyPI"
run /usr/bin/python3 -m venv /env || fail "no virtual environment in the root"
if ! run /env/bin/python -m pip -q --disable-pip-version-check install --no-index --find-links /wheels costate-lang 2>"$root.log"; then
  grep -q 'No matching distribution found for costate-lang' "$root.log" || fail "$(cat "$root.log")"
  echo "no wheel for Python $version, so none is checked in a bare root"
  exit
fi
run /env/bin/python program.py >"$root/tmp/printed" || fail "the program of the README failed"
diff "$root/tmp/wanted" "$root/tmp/printed" || fail "the program of the README prints something else"
echo "the program of the README runs on Python $version in a bare root"
