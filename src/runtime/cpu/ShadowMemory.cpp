#include "runtime/cpu/ShadowMemory.h"

#include "runtime/Text.h"
#include "runtime/cpu/Pages.h"

#include <atomic>
#include <bit>

namespace costate::runtime::cpu {

//===-- One element -------------------------------------------------------===//

bool ElementTrace::isRace() const {
  auto kinds = static_cast<uint8_t>(uses & ~waysOfUpdates);
  bool alike = std::has_single_bit(kinds) && !has(ElementUse::Store);
  return several && !alike;
}

static int rankOf(const ElementTrace &trace) {
  if (trace.stores())
    return 2;
  return trace.updates() ? 1 : 0;
}

ElementTrace ElementTrace::after(ElementUse use, int64_t by,
                                 int64_t place) const {
  if (uses == 0)
    return {static_cast<uint8_t>(use), false, by, place};
  ElementTrace next = *this;
  next.several |= by != workItem;
  // Two places share a value by chance only.
  if (use == ElementUse::SharedStore && stores() && place != site)
    use = ElementUse::Store;
  if (!next.several &&
      rankOf(ElementTrace{static_cast<uint8_t>(use)}) > rankOf(*this))
    next.site = place;
  next.uses |= static_cast<uint8_t>(use);
  return next;
}

static constexpr uint64_t mask(int bits) { return (uint64_t(1) << bits) - 1; }

uint64_t ElementTrace::pack() const {
  uint64_t place = static_cast<uint64_t>(site) & mask(siteBits);
  uint64_t head = (uint64_t(several) << useBits | uses) << siteBits | place;
  return head << workItemBits | static_cast<uint64_t>(workItem);
}

ElementTrace ElementTrace::unpack(uint64_t word) {
  ElementTrace trace;
  trace.workItem = static_cast<int64_t>(word & mask(workItemBits));
  word >>= workItemBits;
  uint64_t place = word & mask(siteBits);
  trace.site = place == mask(siteBits) ? -1 : static_cast<int64_t>(place);
  word >>= siteBits;
  trace.uses = static_cast<uint8_t>(word & mask(useBits));
  trace.several = word >> useBits & 1;
  return trace;
}

//===-- All elements ------------------------------------------------------===//

/// A word is an epoch and a trace.
static constexpr int epochShift = ElementTrace::bits;
static constexpr uint64_t epochs = uint64_t(1) << (64 - epochShift);

bool ShadowMemory::allocate(uint32_t parameter, size_t elements) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(elements, sizeof(uint64_t), &bytes))
    return false;
  bytes = wholePages(bytes);
  if (bytes == 0)
    return elements == 0;
  if (!budget.take(bytes))
    return false;
  std::byte *pages = mapPages(bytes);
  if (!pages) {
    budget.give(bytes);
    return false;
  }
  shadows[parameter] = {pages, bytes};
  return true;
}

Result<std::unique_ptr<ShadowMemory>>
ShadowMemory::make(MemoryBudget &budget, const LaunchRequest &request) {
  std::unique_ptr<ShadowMemory> memory(new ShadowMemory(budget));
  memory->shadows.resize(request.code->parameters.size());
  for (uint32_t parameter : request.code->watched) {
    size_t elements = 1;
    for (int64_t extent : extentsOf(request, parameter))
      elements *= static_cast<size_t>(extent);
    if (!memory->allocate(parameter, elements))
      return Failure{
          ErrorCode::OutOfMemory,
          "kernel `" + request.code->name +
              "`: out of memory for the search for races in " +
              argumentText(*request.code,
                           request.code->parameters[parameter].argument) +
              ", which takes 8 bytes per element; " + leftText(budget) + "; " +
              raiseLimit + ", or use smaller arrays while `debug` is on"};
  }
  return memory;
}

ShadowMemory::~ShadowMemory() {
  for (Shadow &shadow : shadows) {
    unmapPages(shadow.pages, shadow.bytes);
    budget.give(shadow.bytes);
  }
}

void ShadowMemory::beginRange() {
  if (++epoch < epochs)
    return;
  epoch = 1;
  for (Shadow &shadow : shadows)
    if (shadow.pages)
      clearPages(shadow.pages, shadow.bytes);
}

std::optional<ElementTrace> ShadowMemory::add(int64_t parameter,
                                              int64_t element, ElementUse use,
                                              int64_t workItem, int64_t site) {
  auto *words = reinterpret_cast<uint64_t *>(shadows[parameter].pages);
  std::atomic_ref<uint64_t> word(words[element]);
  uint64_t old = word.load(std::memory_order_relaxed);
  if (site >= static_cast<int64_t>(mask(ElementTrace::siteBits)))
    site = -1;
  for (;;) {
    ElementTrace before;
    if (old >> epochShift == epoch)
      before = ElementTrace::unpack(old);
    ElementTrace next = before.after(use, workItem, site);
    if (next.isRace())
      return before;
    uint64_t packed = epoch << epochShift | next.pack();
    if (packed == old ||
        word.compare_exchange_weak(old, packed, std::memory_order_relaxed))
      return std::nullopt;
  }
}

} // namespace costate::runtime::cpu
