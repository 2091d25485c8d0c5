// RUN: costate-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{an array cannot have elements of type 'bf16'}}
costate.kernel @element(%x: !costate.array<bf16, 1>) {}

// -----

// expected-error @+1 {{an array cannot have elements of type 'si32'}}
costate.kernel @signed_element(%x: !costate.array<si32, 1>) {}

// -----

// expected-error @+1 {{an array has at most 8 dimensions, not 9}}
costate.kernel @rank(%x: !costate.array<f32, 9>) {}

// -----

// expected-error @+1 {{argument 0 has `costate.extents`, which has an i64, -1 or more, for each dimension of an array}}
costate.kernel @extents(%x: !costate.array<f32, 2> {costate.extents = array<i64: 3>}) {}

// -----

// expected-error @+1 {{has no results; write to an array instead}}
costate.kernel @result(%x: f64) -> f64 {}

// -----

// expected-error @+1 {{cannot take an argument of type 'index'}}
costate.kernel @argument(%n: index) {}

// -----

costate.kernel @chosen_array(%x: !costate.array<f64, 0>, %y: !costate.array<f64, 0>, %c: i1) {
  // expected-error @+1 {{a value of type '!costate.array<f64, 0>' is an array that is not an argument of the kernel; select elements instead}}
  %z = arith.select %c, %x, %y : !costate.array<f64, 0>
}

// -----

costate.kernel @half(%x: f64) {
  // expected-error @+1 {{a value of type 'f16' is no scalar of a kernel: i1, i32, i64, f32 or f64}}
  %h = arith.truncf %x : f64 to f16
}

// -----

costate.kernel @index_arithmetic(%n: i64) {
  %i = arith.index_cast %n : i64 to index
  // expected-error @+1 {{a value of type 'index' is no scalar of a kernel}}
  %j = arith.addi %i, %i : index
}

// -----

costate.kernel @no_extent() {
  // expected-error @+1 {{needs at least one extent}}
  costate.range () in () {
  }
}

// -----

costate.kernel @indices(%n: i64) {
  // expected-error @+1 {{has 1 extents but 2 indices}}
  costate.range (%i, %j) in (%n) {
  }
}

// -----

costate.kernel @sums(%n: i64) {
  // expected-error @+1 {{must yield one value for each of its sums}}
  %s = costate.range (%i) in (%n) -> f64 {
    costate.yield
  }
}

// -----

costate.kernel @sum_types(%n: i64, %v: f32) {
  // expected-error @+1 {{must yield one value for each of its sums}}
  %s = costate.range (%i) in (%n) -> f64 {
    costate.yield %v : f32
  }
}

// -----

costate.kernel @nested(%n: i64) {
  costate.range (%i) in (%n) {
    // expected-error @+1 {{stands inside a range; use one range with more extents, or a loop}}
    costate.range (%j) in (%n) {
    }
  }
}

// -----

costate.kernel @load(%x: !costate.array<f64, 2>, %i: i64) {
  // expected-error @+1 {{has 1 indices for an array of rank 2}}
  %v = costate.load %x[%i] : !costate.array<f64, 2>
}

// -----

costate.kernel @store(%x: !costate.array<f64, 0>, %v: f64, %i: i64) {
  // expected-error @+1 {{has 1 indices for an array of rank 0}}
  costate.store %v, %x[%i] : !costate.array<f64, 0>
}

// -----

costate.kernel @atomic(%x: !costate.array<f64, 1>, %v: f64) {
  // expected-error @+1 {{has 0 indices for an array of rank 1}}
  costate.atomic_add %v, %x[] : !costate.array<f64, 1>
}

// -----

costate.kernel @bools(%x: !costate.array<i1, 0>, %v: i1) {
  // expected-error @+1 {{cannot add, or take extrema of, bools}}
  costate.atomic_add %v, %x[] : !costate.array<i1, 0>
}

// -----

costate.kernel @least_bool(%x: !costate.array<i1, 0>, %v: i1) {
  // expected-error @+1 {{cannot add, or take extrema of, bools}}
  costate.atomic_min %v, %x[] : !costate.array<i1, 0>
}

// -----

costate.kernel @most(%x: !costate.array<f64, 1>, %v: f64) {
  // expected-error @+1 {{has 0 indices for an array of rank 1}}
  costate.atomic_max %v, %x[] : !costate.array<f64, 1>
}

// -----

costate.kernel @take(%x: !costate.array<f64, 1>, %n: i64) {
  costate.range (%i) in (%n) {
    // expected-error @+1 {{has 0 indices for an array of rank 1}}
    %v = costate.atomic_take %x[] : !costate.array<f64, 1>
  }
}

// -----

costate.kernel @custom_arguments(%x: f64, %n: i64) {
  // expected-error @+1 {{region 0 must take ('f64', 'i64') and yield ('f64')}}
  %y = costate.custom(%x, %n) {
  ^bb0(%a: f64):
    costate.yield %a : f64
  } partials {
  ^bb0(%a: f64, %k: i64, %r: f64):
    costate.yield %a : f64
  } : (f64, i64) -> f64
}

// -----

costate.kernel @custom_partials(%x: f64, %n: i64) {
  // expected-error @+1 {{region 1 must take ('f64', 'i64', 'f64') and yield ('f64')}}
  %y = costate.custom(%x, %n) {
  ^bb0(%a: f64, %k: i64):
    costate.yield %a : f64
  } partials {
  ^bb0(%a: f64, %k: i64, %r: f64):
    costate.yield %a, %a : f64, f64
  } : (f64, i64) -> f64
}

// -----

costate.kernel @custom_effect(%x: f64) {
  // expected-error @+1 {{must not have effects}}
  %y = costate.custom(%x) {
  ^bb0(%a: f64):
    tape.pivot
    costate.yield %a : f64
  } partials {
  ^bb0(%a: f64, %r: f64):
    costate.yield %a : f64
  } : (f64) -> f64
}

// -----

costate.kernel @custom_branch(%x: f64) {
  %y = costate.custom(%x) {
  ^bb0(%a: f64):
    costate.yield %a : f64
  } partials {
  ^bb0(%a: f64, %r: f64):
    %c = arith.cmpf olt, %a, %r : f64
    // expected-error @+1 {{stands in the partial derivatives of a function; these must be straight code}}
    %p = scf.if %c -> f64 {
      scf.yield %a : f64
    } else {
      scf.yield %r : f64
    }
    costate.yield %p : f64
  } : (f64) -> f64
}

// -----

costate.kernel @custom_outside(%x: f64, %z: f64) {
  // expected-note @+1 {{required by region isolation constraints}}
  %y = costate.custom(%x) {
  ^bb0(%a: f64):
    // expected-error @+1 {{using value defined outside the region}}
    %w = arith.addf %a, %z : f64
    costate.yield %w : f64
  } partials {
  ^bb0(%a: f64, %r: f64):
    costate.yield %a : f64
  } : (f64) -> f64
}

// -----

costate.kernel @extent(%x: !costate.array<f64, 2>) {
  // expected-error @+1 {{asks for extent 2 of an array of rank 2}}
  %n = costate.extent %x[2] : !costate.array<f64, 2>
}

// -----

costate.kernel @negative_extent(%x: !costate.array<f64, 2>) {
  // expected-error @+1 {{asks for extent -1 of an array of rank 2}}
  %n = costate.extent %x[-1] : !costate.array<f64, 2>
}

// -----

costate.kernel @text(%x: f64, %a: !costate.array<f64, 1>, %i: i64) {
  // expected-error @+1 {{has a text for more than 1 numbers}}
  costate.check_finite "% is %" %x : () -> f64
}

// -----

costate.kernel @element_text(%x: f64, %a: !costate.array<f64, 1>, %i: i64) {
  costate.check_element added "% and %" %x, %a[%i] : f64, !costate.array<f64, 1>
  // expected-error @+1 {{has a text for more than 1 numbers}}
  costate.check_element "% and %" %x, %a[%i] : f64, !costate.array<f64, 1>
}

// -----

costate.kernel @element_type(%x: f32, %a: !costate.array<f64, 1>, %i: i64) {
  // expected-error @+1 {{of a value that is no element of the array}}
  costate.check_element "" %x, %a[%i] : f32, !costate.array<f64, 1>
}

// -----

costate.kernel @element_rank(%x: f64, %a: !costate.array<f64, 1>) {
  // expected-error @+1 {{has 0 indices for an array of rank 1}}
  costate.check_element "" %x, %a[] : f64, !costate.array<f64, 1>
}

// -----

costate.kernel @value_type(%x: !costate.array<f64, 0>, %v: f32) {
  // expected-note @-1 {{prior use here}}
  // expected-error @+1 {{expects different type than prior uses: 'f64' vs 'f32'}}
  costate.store %v, %x[] : !costate.array<f64, 0>
}

// -----

costate.kernel @stored_type(%x: !costate.array<f64, 0>, %v: f32) {
  // expected-error @+1 {{the value has the value type of the array}}
  "costate.store"(%v, %x) : (f32, !costate.array<f64, 0>) -> ()
}

// -----

costate.kernel @loaded_type(%x: !costate.array<ui32, 0>) {
  // expected-error @+1 {{the result has the value type of the array}}
  %v = "costate.load"(%x) : (!costate.array<ui32, 0>) -> i64
}

// -----

costate.kernel @yield_outside(%n: i64) {
  // expected-error @+1 {{expects parent op to be one of 'costate.range, costate.custom, costate.serial'}}
  costate.yield
}

// -----

costate.kernel @float_division(%x: f64) {
  // expected-error @+1 {{must be i32 or i64, but got 'f64'}}
  %0 = costate.div %x, %x : f64
}

// -----

costate.kernel @integer_sum(%n: i64) {
  // expected-error @+1 {{result #0 must be variadic of 32-bit float or 64-bit float or 64-bit signless integer, but got 'i32'}}
  %s = costate.range (%i) in (%n) -> i32 {
    costate.yield
  }
}

// -----

costate.kernel @message(%n: i64) {
  // expected-error @+1 {{has a text that does not fit to its values, at most 8}}
  costate.print "{f}" %n : i64
}

// -----

costate.kernel @form(%n: i64) {
  costate.print "{i:04d}" %n : i64
  // expected-error @+1 {{has a text that does not fit to its values, at most 8}}
  costate.print "{i:n}" %n : i64
}

// -----

costate.kernel @too_many(%n: i64, %c: i1) {
  // expected-error @+1 {{has a text that does not fit to its values, at most 4}}
  costate.assert %c, "{i}{i}{i}{i}{i}" %n, %n, %n, %n, %n : i64, i64, i64, i64, i64
}

// -----

costate.kernel @narrow(%x: f32) {
  // expected-error @+1 {{cannot make a number of type 'i8'}}
  %y = costate.narrow %x to i8 : f32
}

// -----

costate.kernel @fetch_of_no_kind(%x: !costate.array<i64, 0>, %a: i64) {
  // expected-error @+1 {{has no kind `sub`}}
  %b = costate.atomic_fetch "sub" %a, %x[] : !costate.array<i64, 0>
}

// -----

costate.kernel @wide(%x: i32) {
  // expected-error @+1 {{cannot make a number of type 'i32'}}
  %y = costate.narrow %x to i32 : i32
}

// -----

costate.kernel @bits_of_floats(%x: !costate.array<f64, 0>, %a: f64) {
  // expected-error @+1 {{cannot take the bits of floats}}
  %b = costate.atomic_fetch "and" %a, %x[] : !costate.array<f64, 0>
}

// -----

costate.kernel @fetch_of_bools(%x: !costate.array<i1, 0>, %a: i1) {
  // expected-error @+1 {{cannot add, or take extrema of, bools}}
  %b = costate.atomic_fetch "max" %a, %x[] : !costate.array<i1, 0>
}

// -----

costate.kernel @exchange_without_index(%x: !costate.array<i64, 1>, %a: i64) {
  // expected-error @+1 {{has 0 indices for an array of rank 1}}
  %b = costate.compare_exchange %a if %a, %x[] : !costate.array<i64, 1>
}

// -----

costate.kernel @mixed_sums(%n: i64, %a: f64) {
  // expected-error @+1 {{adds up either floats or i64}}
  %s:2 = costate.range (%i) in (%n) -> (f64, i64) {
    costate.yield %a, %i : f64, i64
  }
}

// -----

costate.kernel @minima_of_floats(%n: i64, %a: f64) {
  // expected-error @+1 {{with minima gives a key and a place of i64}}
  %s = costate.range (%i) in (%n) -> (f64) attributes {minima} {
    costate.yield %a : f64
  }
}

// -----

costate.kernel @minimum_without_a_place(%n: i64) {
  // expected-error @+1 {{with minima gives a key and a place of i64}}
  %s = costate.range (%i) in (%n) -> (i64) attributes {minima} {
    costate.yield %i : i64
  }
}


// -----

costate.kernel @scratch(%x: !costate.array<f64, 1>, %s: !costate.array<f64, 1> {costate.scratch_of = 0 : i64},
                        %t: !costate.array<f64, 1> {costate.tangent_of = 1 : i64}, %i: i64, %v: f64) {
  costate.store %v, %s[%i] {costate.replayed = 0 : i64} : !costate.array<f64, 1>
  // expected-error@+1 {{writes to a scratch array without a part that it repeats}}
  costate.store %v, %t[%i] : !costate.array<f64, 1>
}

// -----

// expected-error @+1 {{argument 1 has `costate.tangent_of`, which names an array in front of it by its number, an i64}}
costate.kernel @tangent_of_none(%x: !costate.array<f64, 1>, %t: !costate.array<f64, 1> {costate.tangent_of = 11 : i64}) {
}

// -----

// expected-error @+1 {{argument 0 has `costate.tangent_of`, which names}}
costate.kernel @tangent_of_itself(%t: !costate.array<f64, 1> {costate.tangent_of = 0 : i64}) {
}

// -----

// expected-error @+1 {{argument 1 has `costate.adjoint_of`, which names}}
costate.kernel @adjoint_of_a_number(%s: f64, %x: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
}

// -----

// expected-error @+1 {{argument 1 has `costate.version_of` without `costate.part`}}
costate.kernel @version_without_part(%x: !costate.array<f64, 1>, %v: !costate.array<f64, 1> {costate.version_of = 0 : i64}) {
}

// -----

// expected-error @+1 {{has `costate.part`, which is an i64 from 0 to 2^32 - 1}}
costate.kernel @part_below_zero(%x: !costate.array<f64, 1>, %v: !costate.array<f64, 1> {costate.version_of = 0 : i64, costate.part = -1 : i64}) {
}

// -----

costate.kernel @part_by_name(%x: !costate.array<f64, 1>, %i: i64, %v: f64) {
  // expected-error @+1 {{has `costate.replayed`, which is an i64 from 0 to 2^32 - 1}}
  costate.store %v, %x[%i] {costate.replayed = "0"} : !costate.array<f64, 1>
}

// -----

costate.kernel @other_end(%n: i64) {
  // expected-error @+1 {{ends with another operation than `costate.yield`}}
  costate.range (%i) in (%n) {
    scf.yield
  }
}
