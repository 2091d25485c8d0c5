#pragma once
/// Which entries of a recording write which elements.

#include "api/TapeImpl.h"
#include "base/ArraySection.h"

#include <map>
#include <optional>
#include <unordered_map>

namespace costate::detail {

/// An ArraySection with the scalars of one launch filled in: for every
/// dimension the indices that may occur; no entries: any index.
using Elements = std::vector<std::vector<int64_t>>;

Elements resolve(const ArraySection &section, const KernelImpl &kernel,
                 const Call &call);
bool mayMeet(const Elements &one, const Elements &other);

/// Finds the writes that a needed element meets. Writes are sorted by their
/// first index, which is the time in time-indexed arrays, so that a question
/// does not look at all of them.
class WriteIndex {
public:
  explicit WriteIndex(const std::vector<TapeEntry> &entries);
  /// A write to any of `elements` of `array` by an entry behind `entry`.
  std::optional<size_t> firstAfter(size_t entry,
                                   const runtime::ArrayStorage &array,
                                   const Elements &elements) const;
  /// How many entries behind `entry` write `array`.
  size_t countAfter(size_t entry, const runtime::ArrayStorage &array) const;

private:
  struct Write {
    size_t entry;
    Elements elements;
  };
  struct Writes {
    std::vector<size_t> entries; ///< ascending
    std::vector<Write> anywhere; ///< whose first index is not known
    std::unordered_map<int64_t, std::vector<Write>> byFirstIndex;
  };
  void add(size_t entry, const runtime::ArrayStorage &array, Elements elements);

  std::map<const runtime::ArrayStorage *, Writes> writes;
};

} // namespace costate::detail
