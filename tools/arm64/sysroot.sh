#!/usr/bin/env bash
# sysroot.sh FOLDER: the libraries of packages.txt for arm64, with all that they need, unpacked
# into FOLDER.
set -euo pipefail
sysroot=$(realpath -m "$1")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Tools come along where the files of CMake in a library's package ask for them.
packages=$(grep -E -- '-dev$|^mlir|^spirv-tools$' "$root/packages.txt" |
  grep -vE 'python|openmpi|clang' | paste -sd ' ')
packages+=' libc6-dev libstdc++-12-dev libpython3-dev'

"$root/tools/debian/unpack.sh" arm64 "$sysroot" $packages

# Links to absolute paths mean files of the sysroot.
find "$sysroot" -type l -lname '/*' ! -lname "$sysroot/*" -printf '%p %l\n' | while read -r link target; do
  ln -sfn "$sysroot$target" "$link"
done
