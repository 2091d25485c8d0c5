#pragma once
/// A call with the code that runs it.

#include "api/AccessSet.h"
#include "api/VersionArrays.h"
#include "runtime/Graph.h"

#include <optional>

namespace costate::detail {

/// The code is that of the kernel, or of one of its derivatives. As an
/// AccessSet it has one use for each parameter of the code.
class BoundLaunch final : public AccessSet {
public:
  /// `call` and `compiled` must outlive it.
  BoundLaunch(const Call &call, Chain chain, Compiled &compiled);

  const Call &call;
  const Chain chain;
  Compiled &compiled;
  const runtime::KernelCode &code;
  bool quiet = false;      ///< see LaunchRequest
  bool fromMemory = false; ///< see Derivation

  bool isGradient() const { return chain.mode == Mode::Gradient; }
  /// Whether tapes may not fit on a CPU: then other code runs instead.
  bool mayLackTapes() const;
  /// A primal that gradients may reload stores of.
  bool canReload = false;
  /// The argument whose stores a gradient reloads, if there is one.
  std::optional<size_t> reloaded;

  /// It will run many times, by one thread at a time, with other scalars in
  /// `call` and copies of versions only: what follows from the arrays is found
  /// once.
  void keep() { isKept = true; }
  /// But that its arrays are over other memory from now on.
  void forgetMemory() {
    isApart = false;
    known.reset();
  }
  /// The adjoints and tangents that it writes.
  std::vector<std::shared_ptr<runtime::ArrayStorage>> derivatives() const;
  runtime::Box writtenElements(size_t use) const override;
  /// Throws BadArgument if an array that is written is given twice.
  void requireApart() const;

  /// Checks, tells watchers, and executes. `versions` must hold what the code
  /// asks for.
  void run(const VersionArrays &versions = {}) const;
  /// Without checks; only writes are counted.
  void execute(const VersionArrays &versions) const;

  /// Memory to work on, which the launch itself provides, in the order of its
  /// parameters.
  struct Workspace {
    std::shared_ptr<runtime::CopyMemory> memory;
    std::vector<runtime::Buffer> buffers;
  };
  Workspace makeWorkspace() const;
  runtime::KeptLaunch request(const VersionArrays &versions,
                              const Workspace &workspace) const;

private:
  /// A gradient whose tape does not fit has changed nothing, and runs again as
  /// one that saves less.
  Result<runtime::LaunchReport> launch(runtime::KeptLaunch kept,
                                       const VersionArrays &versions) const;
  profile::Span span() const;
  /// Bytes for tapes; 0: nobody has chosen any.
  size_t tapeBudget() const;
  /// Those, in the order in which they are tried.
  std::vector<compiler::Derivation> waysToSaveLess() const;
  bool mayRun(const runtime::KernelCode &other) const;
  void noteReloads();
  runtime::KeptLaunch newRequest(const VersionArrays &versions,
                                 const Workspace &workspace) const;
  bool isLeftOut(const runtime::Parameter &parameter) const;
  bool mayShare(size_t one, size_t other) const;
  std::vector<uint64_t> countedFrom(std::span<const uint64_t> slots,
                                    const VersionArrays &versions) const;
  using OwnBuffer = std::vector<runtime::Buffer>::const_iterator;
  /// The first slot of parameter `i`; `own` is the next of the workspace.
  uint64_t slot(size_t i, const VersionArrays &versions, OwnBuffer &own) const;
  std::vector<uint64_t> slots(const VersionArrays &versions,
                              const Workspace &workspace) const;

  std::string useText(size_t use) const override;
  std::string readerText() const override;
  std::string writerText() const override;

  bool hasAdjoints = false;
  bool isKept = false;
  mutable bool isApart = false; ///< known, if it is kept
  mutable std::optional<runtime::KeptLaunch> known;
  /// Parameters whose first slot is another one each time, and its place.
  struct Changing {
    size_t parameter, place;
  };
  std::vector<Changing> changing;
};

} // namespace costate::detail
