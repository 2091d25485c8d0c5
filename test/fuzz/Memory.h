#pragma once
/// What a kernel is launched on.

#include "fuzz/Random.h"
#include "interpreter/Interpreter.h"
#include "ir/Kernel.h"

namespace costate::fuzz {

/// One array or scalar for each argument of a primal.
struct Memory {
  std::vector<interpreter::HostArray>
      arrays; ///< empty bytes where there is a scalar
  std::vector<interpreter::InterpreterArgument> scalars;
};

/// An array of zeros.
interpreter::HostArray makeArray(ir::ArrayType type,
                                 std::vector<int64_t> extents);
size_t sizeOf(const interpreter::HostArray &array);

/// Elements as numbers, whatever their type.
double get(const interpreter::HostArray &array, mlir::Type element, size_t at);
void set(interpreter::HostArray &array, mlir::Type element, size_t at,
         double value);

/// Whether argument `k` is an array of f32 or f64.
bool isFloatArray(ir::KernelOp kernel, unsigned k);

/// One array for each float array of `kernel`, with numbers from -1 to 1 where
/// `chosen`, else zeros.
std::vector<interpreter::HostArray> randomLike(ir::KernelOp kernel,
                                               const Memory &memory,
                                               llvm::ArrayRef<bool> chosen,
                                               Random &random);

/// What makes the text of a kernel a case of its own: the attribute
/// `fuzz.values` of its arguments.
void attachValues(ir::KernelOp kernel, const Memory &memory);
/// The opposite; fails if an argument has no values.
mlir::FailureOr<Memory> attachedValues(ir::KernelOp kernel);

} // namespace costate::fuzz
