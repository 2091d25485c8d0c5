#pragma once
/// What is put into arrays when a recording runs again.

#include "runtime/KeptMemory.h"

#include <map>

namespace costate::detail {

using MemoryByDevice =
    std::map<const runtime::Device *, std::shared_ptr<runtime::CopyMemory>>;

/// The one of `device`, which is made if there is none.
const std::shared_ptr<runtime::CopyMemory> &
memoryOf(MemoryByDevice &memories,
         const std::shared_ptr<runtime::Device> &device);

/// Where it is kept, and what small pieces share.
struct ContentsPlace {
  runtime::KeptMemory::Place place = {};
  MemoryByDevice memories = {};
};

class KeptContents {
public:
  /// What `elements` of `array` hold now. Throws OutOfMemory.
  void keep(const std::shared_ptr<runtime::ArrayStorage> &array,
            const runtime::Box &elements, ContentsPlace &place);
  /// Writes all of it to the arrays.
  void put() const;
  size_t bytes() const;

private:
  struct Part {
    std::shared_ptr<runtime::ArrayStorage> array;
    runtime::Box elements;
    std::shared_ptr<runtime::KeptMemory> values;
  };
  std::vector<Part> parts;
};

} // namespace costate::detail
