#pragma once
/// Finds races: who has used which element in the range that runs.

#include "base/ElementUse.h"
#include "runtime/Device.h"
#include "runtime/MemoryBudget.h"

#include <memory>
#include <optional>
#include <vector>

namespace costate::runtime::cpu {

/// What a range has done to one element so far.
struct ElementTrace {
  uint8_t uses = 0;     ///< a set of ElementUse; 0: none
  bool several = false; ///< by more than one work item
  int64_t workItem = 0; ///< a store if there is one, else the first use
  int64_t site = -1;    ///< of that use

  bool has(ElementUse use) const { return uses & static_cast<uint8_t>(use); }
  /// Only in this way of updating.
  bool updatesBy(ElementUse use) const {
    return uses == static_cast<uint8_t>(use);
  }
  bool stores() const {
    return has(ElementUse::Store) || has(ElementUse::SharedStore);
  }
  bool updates() const {
    return has(ElementUse::Update) || has(ElementUse::Minimum) ||
           has(ElementUse::Maximum);
  }
  /// Several work items may only all read, all update in one way, or all store
  /// the same.
  bool isRace() const;
  ElementTrace after(ElementUse use, int64_t workItem, int64_t site) const;

  /// In `bits` bits. A site is below 2^siteBits - 1, or -1.
  uint64_t pack() const;
  static ElementTrace unpack(uint64_t word);
  static constexpr int workItemBits = 40, siteBits = 11, useBits = 8;
  static constexpr int bits = workItemBits + siteBits + useBits + 1;
  static constexpr int64_t mostWorkItems = int64_t(1) << workItemBits;
};

/// A word for each element of the watched arrays of a launch. Safe to use from
/// several threads, but for beginRange.
class ShadowMemory {
public:
  /// OutOfMemory if the shadow of an array does not fit.
  static Result<std::unique_ptr<ShadowMemory>>
  make(MemoryBudget &budget, const LaunchRequest &request);
  ~ShadowMemory();

  /// Forgets all uses.
  void beginRange();
  /// Adds a use. If that makes a race: what was there before.
  std::optional<ElementTrace> add(int64_t parameter, int64_t element,
                                  ElementUse use, int64_t workItem,
                                  int64_t site);

private:
  explicit ShadowMemory(MemoryBudget &budget) : budget(budget) {}
  bool allocate(uint32_t parameter, size_t elements);

  struct Shadow {
    std::byte *pages = nullptr;
    size_t bytes = 0;
  };
  MemoryBudget &budget;
  std::vector<Shadow> shadows; ///< by parameter
  uint64_t epoch = 0;          ///< words of other epochs count as empty
};

} // namespace costate::runtime::cpu
