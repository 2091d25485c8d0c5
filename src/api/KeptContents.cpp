#include "api/KeptContents.h"

#include "api/AccessSet.h"
#include "api/Checked.h"
#include "api/TapeEntry.h"
#include "runtime/ArrayRows.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::Box;
using runtime::KeptMemory;

const std::shared_ptr<runtime::CopyMemory> &
detail::memoryOf(MemoryByDevice &memories,
                 const std::shared_ptr<runtime::Device> &device) {
  std::shared_ptr<runtime::CopyMemory> &memory = memories[device.get()];
  if (!memory)
    memory = std::make_shared<runtime::CopyMemory>(device);
  return memory;
}

/// A file for less than that is not worth it.
static constexpr size_t smallBytes = size_t(64) << 10;

void KeptContents::keep(const std::shared_ptr<ArrayStorage> &array,
                        const Box &elements, ContentsPlace &place) {
  if (elements.empty())
    return;
  const std::span<const Box> all(&elements, 1);
  const size_t bytes = runtime::bytesOf(*array, all);
  const bool isSmall = bytes <= smallBytes;
  std::shared_ptr<KeptMemory> values = checked(
      !isSmall && KeptMemory::isElsewhere(place.place, *array->device)
          ? KeptMemory::make(place.place, *array, bytes)
          : KeptMemory::make(memoryOf(place.memories, array->device), bytes));
  checked(values->fill(*array, all));
  parts.push_back({array, elements, std::move(values)});
}

void KeptContents::put() const {
  for (const Part &part : parts) {
    SingleUse write(*part.array, &part.elements,
                    [](Loc) { return reverserText(); });
    write.tellWatchers();
    write.countWrites();
    checked(part.values->putBack(*part.array, {&part.elements, 1}));
  }
}

size_t KeptContents::bytes() const {
  size_t sum = 0;
  for (const Part &part : parts)
    sum += part.values->bytes();
  return sum;
}
