#pragma once
/// What is put into arrays when a recording runs again.

#include "runtime/ArrayStorage.h"
#include "runtime/CopyMemory.h"

#include <map>

namespace costate::detail {

using MemoryByDevice =
    std::map<const runtime::Device *, std::shared_ptr<runtime::CopyMemory>>;

/// The one of `device`, which is made if there is none.
const std::shared_ptr<runtime::CopyMemory> &
memoryOf(MemoryByDevice &memories,
         const std::shared_ptr<runtime::Device> &device);

class KeptContents {
public:
  /// What `elements` of `array` hold now, in memory of `memories`. Throws
  /// OutOfMemory.
  void keep(const std::shared_ptr<runtime::ArrayStorage> &array,
            const runtime::Box &elements, MemoryByDevice &memories);
  /// Writes all of it to the arrays.
  void put() const;
  size_t bytes() const;

private:
  struct Part {
    std::shared_ptr<runtime::ArrayStorage> array;
    runtime::Box elements;
    std::shared_ptr<runtime::CopyMemory> memory;
    runtime::Buffer values;
  };
  std::vector<Part> parts;
};

} // namespace costate::detail
