#!/usr/bin/env bash
# sysroot.sh FOLDER: the libraries of packages.txt for arm64, with all that they need, unpacked
# into FOLDER. Apt keeps its state in a folder beside it, so that this system stays as it is.
set -euo pipefail
sysroot=$(realpath -m "$1") state=$(realpath -m "$1").apt
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Tools come along where the files of CMake in a library's package ask for them.
packages=$(grep -E -- '-dev$|^mlir|^spirv-tools$' "$root/packages.txt" |
  grep -vE 'python|openmpi|clang' | paste -sd ' ')
packages+=' libc6-dev libstdc++-12-dev'

stamp=$({ cat "${BASH_SOURCE[0]}" && echo "$packages"; } | sha256sum)
[ "$(cat "$sysroot/stamp" 2>/dev/null)" != "$stamp" ] || exit 0

rm -rf "$sysroot" "$state"
mkdir -p "$sysroot" "$state"/{lists,archives}/partial
: >"$state/status"
cat >"$state/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
Acquire::Retries "3";
Dir::State "$state";
Dir::State::lists "$state/lists";
Dir::State::status "$state/status";
Dir::Cache "$state";
Dir::Cache::archives "$state/archives";
Debug::NoLocking "true";
END
export APT_CONFIG=$state/apt.conf
apt-get -q update
apt-get -q install --yes --download-only $packages
for package in "$state"/archives/*.deb; do
  dpkg-deb --extract "$package" "$sysroot"
done

# Links to absolute paths mean files of the sysroot.
find "$sysroot" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do
  ln -sfn "$sysroot$target" "$link"
done
rm -rf "$state"
echo "$stamp" >"$sysroot/stamp"
