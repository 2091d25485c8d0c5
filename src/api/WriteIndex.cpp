#include "api/WriteIndex.h"

#include <algorithm>

using namespace costate;
using namespace costate::detail;
using runtime::ArrayStorage;

static int64_t valueOf(const SliceIndex &index, const KernelImpl &kernel,
                       const Call &call) {
  if (index.scalar < 0)
    return index.offset;
  uint64_t bits = call.arguments[index.scalar].bits;
  bool narrow = kernel.program->arguments()[index.scalar].type == DType::I32;
  uint64_t value =
      narrow ? static_cast<uint64_t>(static_cast<int32_t>(bits)) : bits;
  return static_cast<int64_t>(value + static_cast<uint64_t>(index.offset));
}

Elements detail::resolve(const ArraySection &section, const KernelImpl &kernel,
                         const Call &call) {
  Elements elements;
  for (const std::vector<SliceIndex> &dim : section.dims) {
    std::vector<int64_t> &indices = elements.emplace_back();
    for (const SliceIndex &index : dim)
      indices.push_back(valueOf(index, kernel, call));
  }
  return elements;
}

bool detail::mayMeet(const Elements &one, const Elements &other) {
  for (size_t d = 0; d < std::min(one.size(), other.size()); ++d) {
    if (one[d].empty() || other[d].empty())
      continue;
    bool common = std::any_of(one[d].begin(), one[d].end(), [&](int64_t index) {
      return std::find(other[d].begin(), other[d].end(), index) !=
             other[d].end();
    });
    if (!common)
      return false;
  }
  return true;
}

WriteIndex::WriteIndex(const std::vector<TapeEntry> &entries) {
  for (size_t e = 0; e < entries.size(); ++e)
    for (size_t i = 0; i < entries[e].call.arguments.size(); ++i) {
      const ArrayStorage *array = entries[e].call.arguments[i].array.get();
      const runtime::Access &access = entries[e].accesses[i];
      if (array && access.written)
        add(e, *array,
            entries[e].kernel ? resolve(access.writtenSection,
                                        *entries[e].kernel, entries[e].call)
                              : Elements());
    }
}

void WriteIndex::add(size_t entry, const ArrayStorage &array,
                     Elements elements) {
  Writes &all = writes[&array];
  all.entries.push_back(entry);
  if (elements.empty() || elements[0].empty())
    all.anywhere.push_back({entry, std::move(elements)});
  else
    for (int64_t index : elements[0])
      all.byFirstIndex[index].push_back({entry, elements});
}

std::optional<size_t> WriteIndex::firstAfter(size_t entry,
                                             const ArrayStorage &array,
                                             const Elements &elements) const {
  auto found = writes.find(&array);
  if (found == writes.end())
    return std::nullopt;
  std::optional<size_t> first;
  auto look = [&](const std::vector<Write> &candidates) {
    auto behind = std::upper_bound(
        candidates.begin(), candidates.end(), entry,
        [](size_t value, const Write &write) { return value < write.entry; });
    for (; behind != candidates.end(); ++behind)
      if (mayMeet(behind->elements, elements)) {
        first = std::min(first.value_or(behind->entry), behind->entry);
        return;
      }
  };
  const Writes &all = found->second;
  look(all.anywhere);
  if (elements.empty() || elements[0].empty()) {
    for (const auto &[index, candidates] : all.byFirstIndex)
      look(candidates);
    return first;
  }
  for (int64_t index : elements[0])
    if (auto candidates = all.byFirstIndex.find(index);
        candidates != all.byFirstIndex.end())
      look(candidates->second);
  return first;
}

size_t WriteIndex::countAfter(size_t entry, const ArrayStorage &array) const {
  auto found = writes.find(&array);
  if (found == writes.end())
    return 0;
  const std::vector<size_t> &entries = found->second.entries;
  return static_cast<size_t>(
      entries.end() - std::upper_bound(entries.begin(), entries.end(), entry));
}
