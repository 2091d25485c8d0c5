#pragma once
/// One pass backwards over a recording.

#include "api/TapeImpl.h"

#include <map>
#include <set>

namespace costate::detail {

/// Everything that can be checked is checked before the first gradient changes.
/// While it lives the recording is in use.
class Reversal {
public:
  /// Throws BadArgument while the `Tape` records or is reversed.
  explicit Reversal(std::shared_ptr<TapeImpl> tape);
  ~Reversal();
  Reversal(const Reversal &) = delete;
  Reversal &operator=(const Reversal &) = delete;

  /// `loss` may be null: gradients are as the user has set them.
  void run(const AnyArray *loss, const BackwardOptions &options);
  /// The gradients that it changes.
  const std::vector<std::shared_ptr<runtime::ArrayStorage>> &changed() const {
    return adjoints;
  }

private:
  using Array = runtime::ArrayStorage;
  using Arrays = std::vector<std::shared_ptr<Array>>;

  void requireWritten(const Array &loss) const;
  void prepare();
  void collectAdjoints();
  void checkContinuity(size_t index);
  void checkCarriers(size_t index);
  void checkWants(size_t index) const;
  void clear(bool written, bool others);
  bool copyGradients(runtime::VersionLog &before, bool asked) const;
  void runEntries(const AnyArray *loss, const BackwardOptions &options);

  const std::shared_ptr<TapeImpl> tape;
  const std::vector<std::unique_ptr<TapeEntry>> &entries;
  MemoryByDevice scratch;
  Arrays adjoints;
  std::set<const Array *> isAdjoint;
  std::map<const Array *, TapeArgument *> lastUse; ///< by an entry
  std::map<uint64_t, uint64_t> lastWrites;         ///< see Reversing
  /// Arrays without gradient that hold differentiable values, by the entry
  /// that wrote them.
  std::map<const Array *, size_t> carriers;
};

/// Throws BadArgument while `tape` records or is reversed; `what` is asked for.
void requireIdle(const TapeImpl &tape, const std::string &what);

} // namespace costate::detail
