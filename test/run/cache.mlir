// What one process has compiled the next one takes from the cache.
// RUN: rm -rf %t && mkdir -p %t
// RUN: env COSTATE_CACHE=1 COSTATE_CACHE_DIR=%t/cache costate-run %s --times --arg 'f64[2]=1,2' > %t/first 2> %t/compiled
// RUN: env COSTATE_CACHE=1 COSTATE_CACHE_DIR=%t/cache costate-run %s --times --arg 'f64[2]=1,2' > %t/second 2> %t/cached
// RUN: env COSTATE_CACHE=0 COSTATE_CACHE_DIR=%t/cache costate-run %s --times --arg 'f64[2]=1,2' 2>&1 | FileCheck %s --check-prefix=COMPILED
// RUN: FileCheck %s --check-prefix=COMPILED < %t/compiled
// RUN: FileCheck %s --check-prefix=CACHED < %t/cached
// RUN: diff %t/first %t/second
// RUN: FileCheck %s < %t/second
// RUN: not env COSTATE_CACHE=1 COSTATE_CACHE_SIZE=much costate-run %s --arg 'f64[2]=1,2' 2>&1 | FileCheck %s --check-prefix=SIZE

// COMPILED: compile_ms {{[0-9.]+}}
// CACHED: cached_ms {{[0-9.]+}}
// CHECK: 0: f64[2]=2,4
// SIZE: COSTATE_CACHE_SIZE: `much` is no number of bytes
costate.kernel @twice(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.addf %v, %v : f64
    costate.store %w, %x[%i] : !costate.array<f64, 1>
  }
}
