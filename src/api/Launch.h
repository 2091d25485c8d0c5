#pragma once
/// Checking and running launches.

#include "api/KernelImpl.h"
#include "runtime/ArrayStorage.h"
#include "runtime/CopyMemory.h"

namespace costate::detail {

/// An argument that fits its declaration.
struct BoundArgument {
  std::shared_ptr<runtime::ArrayStorage> array; ///< null for a scalar
  uint64_t bits = 0; ///< a scalar in its declared type, zero extended
};

/// Arguments that fit a kernel.
struct Call {
  boost::container::small_vector<BoundArgument, 2> arguments;
  std::shared_ptr<runtime::Device> device;
};

/// Checks number, kind, dtype, rank and device of the arguments and the range
/// of scalars; throws BadArgument.
Call bind(const KernelImpl &kernel, std::span<const ArgumentValue> values);

/// Which array arguments have an adjoint (Gradient) or a tangent (Tangent);
/// empty for Primal.
std::vector<bool> activeArguments(Mode mode, const Call &call);

/// What a launch with these arguments asks for. Throws BadArgument if their
/// tangents have different numbers of directions.
compiler::Derivation derivationOf(const KernelImpl &kernel, Chain chain,
                                  const Call &call);

/// A whole launch as the user asks for it: all checks, the run, versions, the
/// recording of a Tape.
void launch(const std::shared_ptr<KernelImpl> &kernel, Chain chain,
            const Call &call);

/// A gradient, or tangents of one, of a launch that has not run yet: runs it,
/// reverses it, and puts back what it wrote.
void launchFromInitialState(const std::shared_ptr<KernelImpl> &kernel,
                            Chain chain, const Call &call);

/// What arrays held before parts of a recorded launch: the version parameters
/// of its code.
class VersionArrays {
public:
  VersionArrays() = default;
  /// Room in `memory` for all that `code` asks for. Throws OutOfMemory.
  VersionArrays(const Call &call, const runtime::KernelCode &code,
                std::shared_ptr<runtime::CopyMemory> memory);
  /// The bytes that this takes.
  static size_t bytesOf(const Call &call, const runtime::KernelCode &code);

  /// Without address if there is none.
  runtime::Buffer find(runtime::Parameter parameter) const;
  size_t bytes() const;

  struct Version {
    runtime::Parameter parameter;
    runtime::Buffer buffer;
  };
  const std::vector<Version> &all() const { return arrays; }

private:
  std::shared_ptr<runtime::CopyMemory> memory;
  std::vector<Version> arrays;
};

/// Throws BadArgument if an array that `code` writes is given twice.
void checkOverlaps(const KernelImpl &kernel, const Call &call,
                   const runtime::KernelCode &code);

/// Throws NotDifferentiable if `code`, of a gradient, would drop a derivative
/// because the kernel itself reads a gradient; one that its caller has passed
/// counts as a constant.
void checkCompanions(const KernelImpl &kernel, const Call &call,
                     const runtime::KernelCode &code);

/// Checks overlaps and runs; used for launches and by Tape::backward.
/// `versions` must hold what `compiled` asks for.
void run(const KernelImpl &kernel, Mode mode, const Call &call,
         Compiled &compiled, const VersionArrays &versions = {});

/// "kernel `relax` (demo.cpp:12): argument 2 (f64 array of rank 1)"
std::string argumentText(const KernelImpl &kernel, size_t index);
/// "argument 2"
std::string nameOf(const KernelImpl &kernel, size_t index);

} // namespace costate::detail
