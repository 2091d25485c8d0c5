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
using runtime::Rows;

const std::shared_ptr<runtime::CopyMemory> &
detail::memoryOf(MemoryByDevice &memories,
                 const std::shared_ptr<runtime::Device> &device) {
  std::shared_ptr<runtime::CopyMemory> &memory = memories[device.get()];
  if (!memory)
    memory = std::make_shared<runtime::CopyMemory>(device);
  return memory;
}

void KeptContents::keep(const std::shared_ptr<ArrayStorage> &array,
                        const Box &elements, MemoryByDevice &memories) {
  if (elements.empty())
    return;
  const std::shared_ptr<runtime::CopyMemory> &memory =
      memoryOf(memories, array->device);
  runtime::Buffer values =
      checked(memory->take(runtime::bytesOf(*array, {&elements, 1})));
  checked(runtime::forEachPiece(*array, {&elements, 1}, values.address,
                                array->buffer.address,
                                [&](Rows original, Rows packed) {
                                  return array->device->copy(packed, original);
                                }));
  parts.push_back({array, elements, memory, values});
}

void KeptContents::put() const {
  for (const Part &part : parts) {
    ArrayStorage &array = *part.array;
    SingleUse write(array, &part.elements, [](Loc) { return reverserText(); });
    write.tellWatchers();
    write.countWrites();
    checked(runtime::forEachPiece(array, {&part.elements, 1},
                                  part.values.address, array.buffer.address,
                                  [&](Rows original, Rows packed) {
                                    return array.device->copy(original, packed);
                                  }));
  }
}

size_t KeptContents::bytes() const {
  size_t sum = 0;
  for (const Part &part : parts)
    sum += part.values.bytes;
  return sum;
}
