// RUN: costate-opt %s --differentiate-forward="order=2" --canonicalize --cse | FileCheck %s --check-prefix=TWICE
// RUN: costate-opt %s --differentiate-forward="directions=2" --canonicalize --cse | FileCheck %s --check-prefix=TWO
// RUN: costate-opt %s --differentiate-forward="order=2 directions=2" | costate-opt --mlir-print-op-generic | costate-opt | FileCheck %s --check-prefix=BOTH
// RUN: costate-opt %s --differentiate-forward --differentiate-forward --differentiate-forward | FileCheck %s --check-prefix=THRICE

// The second derivative along a curve: the first is computed once, and its
// tangent, an array of its own, has the number of the first.
// TWICE-LABEL: costate.kernel @square.jvp
// TWICE-SAME:    %[[X:[a-z0-9]+]]: !costate.array<f64, 0>, %[[S:[a-z0-9]+]]: !costate.array<f64, 0>,
// TWICE-SAME:    %[[DX:[a-z0-9]+]]: !costate.array<f64, 0> {costate.tangent_of = 0 : i64}, %[[DDX:[a-z0-9]+]]: !costate.array<f64, 0> {costate.tangent_of = 2 : i64}
// TWICE-SAME:    %[[DS:[a-z0-9]+]]: !costate.array<f64, 0> {costate.tangent_of = 1 : i64}, %[[DDS:[a-z0-9]+]]: !costate.array<f64, 0> {costate.tangent_of = 4 : i64}
// TWICE:         %[[V:.*]] = costate.load %[[X]][]
// TWICE:         %[[DV:.*]] = costate.load %[[DX]][]
// TWICE:         %[[DDV:.*]] = costate.load %[[DDX]][]
// TWICE:         costate.atomic_add %{{.*}}, %[[S]][]
// TWICE:         costate.atomic_add %{{.*}}, %[[DS]][]
// TWICE:         costate.atomic_add %{{.*}}, %[[DDS]][]
// TWICE-NOT:     costate.atomic_add

// Two curves share the primal and the factors of its derivative.
// TWO-LABEL: costate.kernel @square.jvp
// TWO-SAME:    %[[DX:[a-z0-9]+]]: !costate.array<f64, 1> {costate.tangent_of = 0 : i64}, %[[DS:[a-z0-9]+]]: !costate.array<f64, 1> {costate.tangent_of = 1 : i64}
// TWO-DAG:     %[[ZERO:.*]] = arith.constant 0 : i64
// TWO-DAG:     %[[ONE:.*]] = arith.constant 1 : i64
// TWO:         %[[A:.*]] = costate.load %[[DX]][%[[ZERO]]]
// TWO:         %[[B:.*]] = costate.load %[[DX]][%[[ONE]]]
// TWO:         %[[COS:.*]] = costate.cos
// TWO:         costate.strong_mul %[[A]], %[[COS]]
// TWO:         costate.strong_mul %[[B]], %[[COS]]
// TWO-NOT:     costate.cos
// TWO:         costate.atomic_add %{{.*}}, %[[DS]][%[[ZERO]]]
// TWO:         costate.atomic_add %{{.*}}, %[[DS]][%[[ONE]]]

// BOTH-LABEL: costate.kernel @square.jvp
// BOTH-COUNT-5: costate.atomic_add
// BOTH-NOT:     costate.atomic_add

// RULE: tangents-of-gradients
// Independent directions: the tangent of a tangent has them all.
// THRICE-LABEL: costate.kernel @square.jvp.jvp.jvp
// THRICE-COUNT-8: costate.atomic_add
// THRICE-NOT:   costate.atomic_add
costate.kernel @square(%x: !costate.array<f64, 0>, %s: !costate.array<f64, 0>) {
  %v = costate.load %x[] : !costate.array<f64, 0>
  %w = costate.sin %v : f64
  costate.atomic_add %w, %s[] : !costate.array<f64, 0>
}

// RULE: tangents-of-gradients
// A copy of an array is one of its tangents, all curves and orders.
// TWICE-LABEL: costate.kernel @copied.jvp
// TWICE-SAME:    %[[X:[a-z0-9]+]]: !costate.array<f64, 1>, %[[Y:[a-z0-9]+]]: !costate.array<f64, 1>, %[[DX:[a-z0-9]+]]: {{.*}}, %[[DDX:[a-z0-9]+]]: {{.*}}, %[[DY:[a-z0-9]+]]: {{.*}}, %[[DDY:[a-z0-9]+]]: {{[^%]*}}
// TWICE-NEXT:    costate.copy %[[X]] to %[[Y]] : !costate.array<f64, 1>
// TWICE-NEXT:    costate.copy %[[DX]] to %[[DY]] : !costate.array<f64, 1>
// TWICE-NEXT:    costate.copy %[[DDX]] to %[[DDY]] : !costate.array<f64, 1>
// TWO-LABEL:   costate.kernel @copied.jvp
// TWO:           costate.copy %{{.*}} to %{{.*}} : !costate.array<f64, 1>
// TWO-NEXT:      costate.copy %{{.*}} to %{{.*}} : !costate.array<f64, 2>
// TWO-NEXT:      costate.return
costate.kernel @copied(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  costate.copy %x to %y : !costate.array<f64, 1>
}
