#pragma once
/// A kernel behind its handles.

#include "base/Fork.h"
#include "base/Profile.h"
#include "compiler/Compiler.h"
#include "costate/kernel.h"
#include "runtime/Device.h"

#include <atomic>
#include <map>
#include <optional>

namespace costate::detail {

/// Code of one mode and one choice of active arguments.
struct Compiled {
  Mutex mutex; ///< held while it is compiled
  std::optional<runtime::KernelCode> code;
  std::optional<Failure> failure; ///< why there is none
  double milliseconds = 0;
  std::atomic<size_t> tapeBytes = 0;    ///< of the last launch
  std::atomic<size_t> allTapeBytes = 0; ///< GPU: of all threads
  std::atomic<size_t> tapeBudget = 0;   ///< that the user has set for that
  std::atomic<size_t> versionBytes = 0; ///< of its versions of arrays
  /// The first of the ways to compile it whose tapes have fitted.
  std::atomic<size_t> fitting = 0;
};

/// What the arguments were when a kernel had last run on the same arrays.
struct PastLaunch {
  static constexpr uint64_t unknown = ~uint64_t(0);

  /// By order, then by argument: of the array, and of its tangents as far as
  /// the launch knew them.
  std::vector<std::vector<uint64_t>> versions;
  std::vector<uint64_t> scalars; ///< by argument; 0 for an array
};

/// Safe to use from several threads.
struct KernelImpl {
  KernelImpl(std::shared_ptr<compiler::Program> program,
             std::shared_ptr<cache::Store> cache, KernelOptions options,
             Loc loc)
      : program(std::move(program)), cache(std::move(cache)), options(options),
        loc(loc) {}
  ~KernelImpl();

  std::shared_ptr<compiler::Program> program; ///< always there
  const std::shared_ptr<cache::Store> cache;  ///< of `program`; null: none
  const KernelOptions options;
  const Loc loc;              ///< line 0: unknown
  syntax::OrderLimit limit{}; ///< of derivatives; set when it is made

  /// Compiles on first use; others that want the same code wait for it.
  Compiled &compiled(const compiler::Derivation &derivation);
  Compiled &compiled(Mode mode, const std::vector<bool> &active,
                     const runtime::Device &device);

  /// Past launches by the identities of their arguments. Forgets old ones: to
  /// the caller that looks like never launched.
  void remember(const std::vector<uint64_t> &identities, PastLaunch launch);
  std::optional<PastLaunch> recall(const std::vector<uint64_t> &identities);

  /// "kernel `relax` (demo.cpp:12)"
  std::string title() const;
  /// For profiles: "tangent of gradient of relax".
  profile::Span span(profile::Kind kind, bool isGradient, unsigned order) const;
  std::string report();

private:
  Mutex mutex;
  std::map<compiler::Derivation, Compiled> codes;
  std::map<std::vector<uint64_t>, PastLaunch> past;
};

/// With these functions called.
Kernel make_kernel(const TracedKernel &traced, KernelOptions options,
                   Calls calls);

/// " (demo.cpp:7)"; nothing if it is not known
std::string sourceText(Loc loc);

/// "f64 array of rank 2", "i32 scalar"
std::string typeText(const syntax::Argument &argument);

} // namespace costate::detail
