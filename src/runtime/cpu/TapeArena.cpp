#include "runtime/cpu/TapeArena.h"

#include "runtime/cpu/Pages.h"

namespace costate::runtime::cpu {

bool TapeArena::reserve(size_t wanted) {
  if (wanted <= bytes)
    return true;
  size_t rounded = wholePages(wanted);
  if (rounded == 0 || !budget.take(rounded - bytes))
    return false;
  std::byte *grown =
      pages ? growPages(pages, bytes, rounded) : mapPages(rounded);
  if (!grown) {
    budget.give(rounded - bytes);
    return false;
  }
  pages = grown;
  bytes = rounded;
  return true;
}

void TapeArena::release() {
  unmapPages(pages, bytes);
  budget.give(bytes);
  pages = nullptr;
  bytes = 0;
}

} // namespace costate::runtime::cpu
