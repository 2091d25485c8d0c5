#!/usr/bin/env bash
# check.sh ARCHIVE [ARGUMENT...]: unpacks an archive in a root folder that holds
# nothing but glibc and runs its programs there; costate-test with the arguments,
# or a short selection.
set -euo pipefail
archive=$1
shift
[ $# -gt 0 ] || set -- --gtest_filter='*Corpus*:Damaged*:KernelTest*:Tape*' --gtest_brief=1

fail() {
  echo "check.sh: $*" >&2
  exit 1
}

apart=(/usr/bin/unshare --map-root-user --mount --pid --fork --mount-proc)
"${apart[@]}" true || fail "no namespaces here, so $archive is not checked"

limit=40000000
size=$(stat -c %s "$archive")
[ "$size" -lt $limit ] || fail "$archive has $size bytes, more than $limit"

bare=$(mktemp -d)
trap 'rm -rf "$bare"' EXIT
mkdir -p "$bare"/{lib64,lib/x86_64-linux-gnu,proc,dev,tmp,away}
touch "$bare/dev/null" # a device needs more rights
cp -L /lib64/ld-linux-x86-64.so.2 "$bare/lib64"
for library in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
  cp -L "/lib/x86_64-linux-gnu/$library" "$bare/lib/x86_64-linux-gnu"
done
tar -C "$bare/away" -xf "$archive" --strip-components=1
# lib/runtime is this system's, and needs its glibc; older systems use their own.
python3 "$(dirname "${BASH_SOURCE[0]}")/check_symbols.py" "$bare/away"/bin "$bare/away"/lib/*.so* || fail "older systems are too old"

# run PROGRAM ARGUMENT...: in the bare root, from another folder than its own.
run() {
  local program=$1 start=$SECONDS
  shift
  env -i "${apart[@]}" --root="$bare" --wd=/tmp "/away/bin/$program" "$@" ||
    fail "$program failed in a bare root"
  echo "ok  $program, $((SECONDS - start)) s" >&2
}

kernel=/away/share/costate/test/run/costate_run.mlir
run costate-run $kernel --kernel exp_sin --grad --arg 'f64[3]=0,1,2' --arg 'f64[3]:0' \
  --seed '1=f64[3]:1' --print 0 >"$bare/gradient"
grep -q '0.grad: f64\[3\]=1,1.25338' "$bare/gradient" || fail "costate-run: $(cat "$bare/gradient")"
for example in newton relax string; do
  run "example-$example" >/dev/null
done
run costate-bench loops --smoke
run costate-fuzz --seconds 2 --seed 1
run costate-fuzz --device simt --count 20
run costate-test "$@"
echo "$archive: $((size / 1000)) kB, runs in a bare root"
