#pragma once
/// Memory for what elements of an array held: on their device, or elsewhere.

#include "runtime/ArrayStorage.h"
#include "runtime/CopyMemory.h"

#include <memory>
#include <span>
#include <string>

namespace costate::runtime {

class KeptMemory {
public:
  /// On the device, on the host, or in files of `folder`.
  struct Place {
    bool onHost = false;
    std::string folder = {};
  };
  /// Whether it takes memory that arrays and tapes of `device` cannot have.
  static bool isElsewhere(const Place &place, Device &device);
  /// For elements of `array`. OutOfMemory.
  static Result<std::shared_ptr<KeptMemory>>
  make(const Place &place, const ArrayStorage &array, size_t bytes);
  /// The same in `pool`.
  static Result<std::shared_ptr<KeptMemory>>
  make(const std::shared_ptr<CopyMemory> &pool, size_t bytes);
  /// Once all is given back: most of what is kept for others.
  static void trim(const Place &place, Device &device);

  virtual ~KeptMemory() = default;
  KeptMemory(const KeptMemory &) = delete;
  KeptMemory &operator=(const KeptMemory &) = delete;

  size_t bytes() const { return buffer.bytes; }
  virtual Result<> fill(const ArrayStorage &array,
                        std::span<const Box> boxes) const = 0;
  virtual Result<> putBack(const ArrayStorage &array,
                           std::span<const Box> boxes) const = 0;

protected:
  explicit KeptMemory(Buffer buffer) : buffer(buffer) {}

  const Buffer buffer;
};

} // namespace costate::runtime
