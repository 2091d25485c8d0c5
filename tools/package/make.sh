#!/usr/bin/env bash
# make.sh BUILD: packs the programs in BUILD (preset `package`) with the libraries
# that they need and prints the path of the archive.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$1
name=costate-$(git -C "$tree" describe --always --dirty)-linux-x86_64
stage=$build/stage/$name
archive=$tree/build/$name.tar.xz

programs=(costate-test costate-bench costate-run costate-opt costate-fuzz costate-demo
  example-{newton,relax,string,billiards,chain,cloth,smoke,volume})

library() {
  readlink -e "$(clang++-22 -print-file-name="$1")" ||
    { echo "make.sh: there is no $1" >&2; return 1; }
}

stage_binaries() {
  mkdir -p "$stage/bin" "$stage/lib/runtime"
  cp "${programs[@]/#/$build/bin/}" "$stage/bin"
  cp "$build/lib/libcostate-llvm.so" "$stage/lib"
  local soname
  for soname in libsleef.so.3; do
    cp "$(library $soname)" "$stage/lib/$soname"
  done
  # Beside the others these would hide a newer system's from programs of users.
  for soname in libstdc++.so.6 libgcc_s.so.1; do
    cp "$(library $soname)" "$stage/lib/runtime/$soname"
  done
  llvm-strip-22 --strip-all "$stage"/bin/*
  find "$stage/lib" -type f -name '*.so*' -exec llvm-strip-22 --strip-unneeded {} +
}

# What tests read; see test/SourceTree.h.
stage_test_files() {
  (cd "$tree" && find src test -name '*.mlir' && echo test/property/corpus.txt) |
    tar -C "$tree" -cf - -T - | tar -C "$stage/share/costate" -xf -
}

# Programs in CUDA that costate-bench is measured against, built where they run.
stage_yardsticks() {
  cp -r "$build/yardsticks" "$stage/share/costate/yardsticks"
}

stage_licences() {
  local package folder=$stage/share/doc/costate
  mkdir -p "$folder"
  cp "$tree/LICENSE" "$folder/LICENSE"
  for package in libllvm22 libmlir-22-dev libsleef3 libstdc++6 libgcc-s1 libzstd-dev \
    zlib1g-dev libgtest-dev libcli11-dev spirv-tools; do
    cp -L "/usr/share/doc/$package/copyright" "$folder/$package.txt"
  done
  # The rest is of other parts of Boost.
  awk -v RS= -v ORS='\n\n' '/libs\/context\/\*/ || /^License: BSL-1.0\n/' \
    /usr/share/doc/libboost-context1.74-dev/copyright >"$folder/libboost-context1.74-dev.txt"
}

rm -rf "$build/stage"
mkdir -p "$stage/share/costate" "$stage/examples"
cmake --install "$build" --prefix "$stage" >/dev/null
stage_binaries
stage_test_files
stage_yardsticks
stage_licences
cp -r "$tree"/examples/* "$stage/examples"
find "$stage/examples" \( -name CMakeLists.txt -o -name '*Test.cpp' \) -delete
cp "$tree/docs/guide/package.md" "$stage/README.md"

tar -C "$build/stage" --sort=name --owner=0 --group=0 --numeric-owner -cf - "$name" |
  xz -9 -T2 >"$archive.part"
mv "$archive.part" "$archive"
echo "$archive"
