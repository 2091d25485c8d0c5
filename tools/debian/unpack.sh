#!/usr/bin/env bash
# unpack.sh ARCHITECTURE FOLDER PACKAGE...: Debian's packages, with all that they need, unpacked
# into FOLDER. Apt keeps its state in a folder beside it, so that this system stays as it is.
set -euo pipefail
architecture=$1 folder=$(realpath -m "$2") state=$(realpath -m "$2").apt
shift 2

stamp=$({ cat "${BASH_SOURCE[0]}" && echo "$architecture $*"; } | sha256sum)
[ "$(cat "$folder/stamp" 2>/dev/null)" != "$stamp" ] || exit 0

rm -rf "$folder" "$state"
mkdir -p "$folder" "$state"/{lists,archives}/partial
: >"$state/status"
cat >"$state/apt.conf" <<END
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
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
apt-get -q install --yes --download-only "$@"
for package in "$state"/archives/*.deb; do
  dpkg-deb --extract "$package" "$folder"
done
rm -rf "$state"
echo "$stamp" >"$folder/stamp"
