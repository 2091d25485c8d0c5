#pragma once
/// One check of one kernel.

#include "fuzz/Check.h"
#include "fuzz/Numbers.h"

namespace costate::fuzz {

/// A property does not hold.
struct Mismatch {
  Property property;
  std::string text;
};

/// Nothing more can be said about the kernel.
struct SetAside {
  Verdict::Kind kind;
};

using Active = llvm::SmallVector<bool>;

/// A derivative that can be launched.
struct Derived {
  autodiff::Derivative info;
  Launchable launchable;

  mutable ir::KernelOp kernel;
};

class Checker {
public:
  Checker(Session &session, mlir::ModuleOp module, const Memory &memory,
          bool isSingular, uint64_t seed, Properties wanted);

  Verdict run();

private:
  void properties();
  void primal();

  // Launches.
  Launchable translate(ir::KernelOp of, Property property);
  interpreter::InterpreterReport
  launch(const Launchable &launchable, Memory &memory, Property property,
         interpreter::InterpreterOptions options = {});
  void refuseWild(const Arrays &arrays,
                  const interpreter::InterpreterReport &report);
  /// The primal part of `memory` must be that of `expected`.
  void expectPrimal(Property property, const char *what, const Memory &memory,
                    const Memory &expected);
  double roundings() const;
  double tolerance() const;

  // Text and passes.
  void prints(ir::KernelOp of);
  mlir::OwningOpRef<mlir::ModuleOp> moduleWith(ir::KernelOp of);
  void apply(Session::Change &change, mlir::ModuleOp to, Property property);
  void passes();
  bool differsNearby(const Launchable &launchable);
  Memory nudged();
  void watches(llvm::StringRef race);
  void prepared();

  // Sections.
  bool isInside(const ArraySection &section,
                const interpreter::HostArray &array, size_t at) const;
  template <class Visit> void forElements(Visit visit);
  void sections();

  // Derivatives.
  using Mode = llvm::function_ref<mlir::FailureOr<autodiff::Derivative>(
      ir::KernelOp, llvm::ArrayRef<bool>, autodiff::Refusal &)>;
  /// Null if `of` has no such derivative; says why in `reason`.
  static mlir::FailureOr<autodiff::Derivative>
  reverseMode(ir::KernelOp primal, llvm::ArrayRef<bool> active,
              autodiff::Refusal &refusal) {
    return autodiff::differentiateReverse(primal, active, refusal);
  }
  std::optional<Derived> differentiate(ir::KernelOp of, Mode mode,
                                       llvm::ArrayRef<bool> active,
                                       std::string &reason);
  std::optional<Derived> forwardOf(ir::KernelOp of, llvm::ArrayRef<bool> active,
                                   autodiff::Curves curves = {});
  std::optional<Derived> reverseOf(llvm::ArrayRef<bool> active);
  Active floatsAmong(ir::KernelOp of, llvm::ArrayRef<bool> wantedArrays);
  Active allFloats(ir::KernelOp of);
  void derive(llvm::ArrayRef<bool> all);
  /// Tangents along `direction`.
  Arrays along(const Derived &forward, const Memory &from,
               const Arrays &direction);
  /// What the recording primal leaves in versions, from the input `from`.
  std::vector<Recorded> recordedFor(const Derived &gradient,
                                    const Memory &from);
  /// Adjoints for `weights`, from the memory `from` that a launch has left.
  Arrays pulled(const Derived &gradient, const Memory &from,
                const Arrays &weights,
                interpreter::InterpreterOptions options = {},
                Property property = Property::Gradient);
  void agree(const Arrays &tangents, const Arrays &direction,
             const Arrays &weights);
  void expectAdjoints(Property property, const Arrays &actual);
  void ofGradient(const Derived &gradient, const Arrays &weights);
  void steers(ir::KernelOp gradient);
  void smallTape(const Derived &gradient, const Arrays &weights);
  Memory poisoned(const Derived &gradient);
  std::vector<Recorded> poisonedVersions(const Derived &gradient);
  Memory initial(const Derived &gradient);
  void optimised(const Derived &gradient, const Arrays &weights);
  // CheckCut.cpp
  void expectSame(Property property, const Derived &other,
                  const Arrays &weights, size_t tapeBytes,
                  std::optional<size_t> budget = std::nullopt,
                  bool measured = false);
  void plans(llvm::ArrayRef<bool> active, const Arrays &weights);
  void cutLoops(llvm::ArrayRef<bool> active, const Arrays &weights);
  Active closed(Active active);
  void expectPassive(llvm::ArrayRef<bool> active, const Arrays &tangents,
                     const Arrays &direction);
  void subset();

  // Other ways to the same numbers.
  void still(llvm::ArrayRef<bool> active);
  void entries(const Derived &forward, llvm::ArrayRef<bool> active,
               const Arrays &weights);
  void differences(const Derived &forward);

  // Second derivatives.
  void second(const Derived &forward, const Derived &gradient,
              const Arrays &direction, const Arrays &weights);
  std::optional<Arrays> forwardTwice(const Derived &forward,
                                     const Arrays &first, const Arrays &other);
  std::optional<Arrays> forwardOverReverse(const Derived &forward,
                                           const Derived &gradient,
                                           const Arrays &weights,
                                           const Arrays &direction);
  mlir::FailureOr<std::vector<Recorded>>
  tangentsOfVersions(const Derived &gradient, const Arrays &direction);
  bool isRightNearby();
  void gradientDifferences(const Derived &gradient, const Arrays &weights,
                           const Arrays &direction, const Arrays &expected);
  std::optional<Arrays> gradientAt(const Derived &gradient,
                                   const Arrays &weights,
                                   const Arrays &direction, double factor);
  void curves(const Derived &forward, const Arrays &direction);
  void directions(const Derived &forward, llvm::ArrayRef<bool> active);

  Session &session;
  mlir::ModuleOp module;
  ir::KernelOp kernel;
  const Memory &before;
  const bool isSingular;
  bool isNearby = false; ///< looks at a point beside the one that was given
  const uint64_t seed;
  Properties wanted;
  Random random;
  Verdict result;
  Memory after;                   ///< what the primal left
  std::optional<Arrays> adjoints; ///< of the gradient that is looked at
  std::vector<Recorded> versions; ///< that it needs
  llvm::SmallVector<ir::KernelOp> derivatives;
  bool single = false; ///< uses f32 somewhere
  bool half = false;   ///< and rounds to f16
  uint64_t steps = 0;  ///< of the primal
  double addend = 0;   ///< the largest so far
  size_t peak = 0;     ///< bytes of tape of the last gradient
};

/// Values above are not compared.
constexpr double wild = 1e5, wildAddend = 1e9;

template <class Visit> void Checker::forElements(Visit visit) {
  for (auto [k, type] : llvm::enumerate(kernel.getArgumentTypes()))
    if (auto array = mlir::dyn_cast<ir::ArrayType>(type))
      for (size_t at = 0; at < sizeOf(before.arrays[k]); ++at)
        visit(k, array.getElementType(), at);
}

} // namespace costate::fuzz
