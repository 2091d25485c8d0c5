#pragma once
/// What a kernel is launched on.

#include "fuzz/Random.h"
#include "ir/Kernel.h"
#include "ir/interpreter/Interpreter.h"

namespace costate::fuzz {

/// One array or scalar for each argument of a primal.
struct Memory {
  std::vector<ir::HostArray> arrays; ///< empty bytes where there is a scalar
  std::vector<ir::InterpreterArgument> scalars;
};

/// An array of zeros.
ir::HostArray makeArray(ir::ArrayType type, std::vector<int64_t> extents);
size_t sizeOf(const ir::HostArray &array);

/// Elements as numbers, whatever their type.
double get(const ir::HostArray &array, mlir::Type element, size_t at);
void set(ir::HostArray &array, mlir::Type element, size_t at, double value);

/// Whether argument `k` is an array of f32 or f64.
bool isFloatArray(ir::KernelOp kernel, unsigned k);

/// One array for each float array of `kernel`, with numbers from -1 to 1 where
/// `chosen`, else zeros.
std::vector<ir::HostArray> randomLike(ir::KernelOp kernel, const Memory &memory,
                                      llvm::ArrayRef<bool> chosen,
                                      Random &random);

/// What makes the text of a kernel a case of its own: the attribute
/// `fuzz.values` of its arguments.
void attachValues(ir::KernelOp kernel, const Memory &memory);
/// The opposite; fails if an argument has no values.
mlir::FailureOr<Memory> attachedValues(ir::KernelOp kernel);

} // namespace costate::fuzz
