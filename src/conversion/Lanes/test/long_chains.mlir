// RUN: costate-opt %s --outline-ranges --form-lanes=lanes=4 | FileCheck %s

// LLVM simplifies a mask by all that it is made of: in a chain of branches, of
// no more than eight.
// CHECK-LABEL: llvm.func internal @chain.chunk0
// CHECK-COUNT-8: arith.cmpi eq
// CHECK:         llvm.inline_asm "", "=r,0"
// CHECK:         arith.cmpi eq
costate.kernel @chain(%x: !costate.array<i64, 1>) {
  %n0 = arith.constant 0 : i64
  %n1 = arith.constant 1 : i64
  %n2 = arith.constant 2 : i64
  %n3 = arith.constant 3 : i64
  %n4 = arith.constant 4 : i64
  %n5 = arith.constant 5 : i64
  %n6 = arith.constant 6 : i64
  %n7 = arith.constant 7 : i64
  %n8 = arith.constant 8 : i64
  %size = costate.extent %x[0] : !costate.array<i64, 1>
  costate.range (%i) in (%size) {
    %a = costate.load %x[%i] : !costate.array<i64, 1>
    %m0 = arith.cmpi eq, %a, %n0 : i64
    scf.if %m0 {
      costate.store %n0, %x[%i] : !costate.array<i64, 1>
    } else {
      %m1 = arith.cmpi eq, %a, %n1 : i64
      scf.if %m1 {
        costate.store %n1, %x[%i] : !costate.array<i64, 1>
      } else {
        %m2 = arith.cmpi eq, %a, %n2 : i64
        scf.if %m2 {
          costate.store %n2, %x[%i] : !costate.array<i64, 1>
        } else {
          %m3 = arith.cmpi eq, %a, %n3 : i64
          scf.if %m3 {
            costate.store %n3, %x[%i] : !costate.array<i64, 1>
          } else {
            %m4 = arith.cmpi eq, %a, %n4 : i64
            scf.if %m4 {
              costate.store %n4, %x[%i] : !costate.array<i64, 1>
            } else {
              %m5 = arith.cmpi eq, %a, %n5 : i64
              scf.if %m5 {
                costate.store %n5, %x[%i] : !costate.array<i64, 1>
              } else {
                %m6 = arith.cmpi eq, %a, %n6 : i64
                scf.if %m6 {
                  costate.store %n6, %x[%i] : !costate.array<i64, 1>
                } else {
                  %m7 = arith.cmpi eq, %a, %n7 : i64
                  scf.if %m7 {
                    costate.store %n7, %x[%i] : !costate.array<i64, 1>
                  } else {
                    %m8 = arith.cmpi eq, %a, %n8 : i64
                    scf.if %m8 {
                      costate.store %n8, %x[%i] : !costate.array<i64, 1>
                    } else {
                      costate.store %n0, %x[%i] : !costate.array<i64, 1>
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}
