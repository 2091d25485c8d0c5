#pragma once
/// The public API of Costate; syntax.h adds the macros of control flow.

#include <iostream>
#include <vector>

#include "costate/array.h"
#include "costate/array_ref.h"
#include "costate/control.h"
#include "costate/custom_derivative.h"
#include "costate/custom_launch.h"
#include "costate/decompositions.h"
#include "costate/device.h"
#include "costate/error.h"
#include "costate/expr.h"
#include "costate/f16.h"
#include "costate/functions.h"
#include "costate/graph.h"
#include "costate/kernel.h"
#include "costate/local.h"
#include "costate/mat.h"
#include "costate/math.h"
#include "costate/message.h"
#include "costate/named_function.h"
#include "costate/quaternion.h"
#include "costate/random.h"
#include "costate/ranges.h"
#include "costate/reduce.h"
#include "costate/statistics.h"
#include "costate/struct.h"
#include "costate/tape.h"
#include "costate/tensor.h"
#include "costate/types.h"
#include "costate/vec.h"
