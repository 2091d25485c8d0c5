#!/usr/bin/env bash
# link_llvm.sh OBJECTS OUTPUT ARCHIVES TOOLS COMPILER...: links a shared library of
# what the files listed in OBJECTS use of LLVM's, MLIR's and LLD's static archives. It
# exports just that, so that all the rest of the archives stays away.
set -euo pipefail
objects=$1 output=$2 archives=$3 tools=$4 compiler=("${@:5}")
here=$(dirname "${BASH_SOURCE[0]}")

symbols=$output.symbols
xargs "$tools/llvm-nm" --format=posix --extern-only --no-sort --quiet <"$objects" |
  awk '$1 ~ /4llvm|4mlir|3lld|^LLVM/ && $2 ~ /^[UwWVv]$/ { print $2, $1 }' | sort -u >"$symbols"

# Wanted: what no object defines. Exported as well: what both sides define, for
# there must be one of it at run time. With a version, for a driver that is loaded
# later (Mesa's) brings an LLVM of its own, whose symbols have the same names.
awk '$1 == "U" { print "-Wl,--undefined=" $2 }' "$symbols" >"$output.wanted"
awk 'BEGIN { print "COSTATE_LLVM { global:" } { print "  \"" $2 "\";" } END { print "  local: *; };" }' \
  "$symbols" >"$output.exports"

# LLD can optimise bitcode, for every processor and with Polly. Nobody asks it to, and it would triple the size.
"$tools/llvm-nm" --format=posix --undefined-only --quiet "$archives/liblldELF.a" |
  awk '$1 ~ /^LLVMInitialize/ { print $1 }' | sort -u |
  comm -23 - <(awk '{ print $2 }' "$symbols" | sort -u) |
  awk '{ print "-Wl,--defsym=" $1 "=costate_nothing" }' >"$output.unwanted"
echo "-Wl,--defsym=_Z18getPollyPluginInfov=costate_nothing" >>"$output.unwanted"

mapfile -t libraries < <(ls "$archives"/libMLIR*.a "$archives"/libLLVM*.a "$archives"/liblld{ELF,Common}.a |
  grep -vE 'libMLIR[A-Za-z]*Test|libMLIRCAPI')
"${compiler[@]}" -shared -fuse-ld=lld -o "$output" -Wl,-soname,"$(basename "$output")" \
  -Wl,--gc-sections,-z,defs,--undefined-version,--version-script="$output.exports" \
  -Wl,-rpath,'$ORIGIN:$ORIGIN/runtime' @"$output.wanted" @"$output.unwanted" \
  -Wl,--start-group "${libraries[@]}" -Wl,--end-group \
  -l:libzstd.a -l:libz.a @"$here/older_libraries.rsp" -x c "$here/older_libraries.c" "$here/llvm_nothing.c"
