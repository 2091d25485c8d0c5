#!/usr/bin/env bash
# check_wheel.sh PYTHON WHEEL...: runs the program of the README by QEMU, with the wheel for arm64 that
# Debian's Python takes and with NumPy, and compares what it prints. PYTHON has pip, and installs them.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
root=$tree/build/debian-arm64 python=$1
shift

fail() {
  echo "check_wheel.sh: $*" >&2
  exit 1
}

"$tree/tools/debian/unpack.sh" arm64 "$root" python3 libstdc++6 >"$root.log" 2>&1 ||
  fail "no root: $(tail -n 3 "$root.log")"
rm -rf "$root/wheels" "$root/site"
mkdir -p "$root"/{wheels,tmp}
cp "$@" "$root/wheels"
"$tree/tools/package/readme_program.sh" "$root/tmp"

run() { env -i HOME="$root/tmp" PYTHONPATH="$root/site" qemu-aarch64 -L "$root" "$root/usr/bin/python3" "$@"; }
version=$(run -c 'import sys; print("%d.%d" % sys.version_info[:2])')
install() {
  "$python" -m pip -q --disable-pip-version-check install --target "$root/site" --only-binary :all: \
    --python-version "$version" --platform manylinux_2_34_aarch64 --platform manylinux_2_28_aarch64 \
    --platform manylinux2014_aarch64 "$@"
}
if ! install --no-index --no-deps --find-links "$root/wheels" costate-lang 2>"$root.log"; then
  grep -q 'No matching distribution found for costate-lang' "$root.log" || fail "$(cat "$root.log")"
  echo "no wheel for Python $version, so none is run"
  exit
fi
install numpy || fail "no NumPy; it needs PyPI"
(cd "$root/tmp" && run program.py >printed) || fail "the program of the README failed"
diff "$root/tmp/wanted" "$root/tmp/printed" || fail "the program of the README prints something else"
echo "the program of the README runs on Python $version of arm64, by QEMU"
