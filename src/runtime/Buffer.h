#pragma once
/// Pieces of device memory.

#include <cstddef>
#include <cstring>

namespace costate::runtime {

/// A piece of device memory, aligned to 64 bytes. On a host device `address`
/// can be dereferenced. Null if it has no bytes.
struct Buffer {
  std::byte *address = nullptr;
  size_t bytes = 0;
};

/// Pieces of equal size at a constant distance, which have no byte in common. A
/// buffer is one.
struct Rows {
  Rows(Buffer buffer)
      : address(buffer.address), bytes(buffer.bytes), pitch(buffer.bytes) {}
  Rows(std::byte *address, size_t bytes, size_t count, size_t pitch)
      : address(address), bytes(bytes), count(count), pitch(pitch) {}

  size_t size() const { return bytes * count; }

  std::byte *address;
  size_t bytes; ///< of one
  size_t count = 1;
  size_t pitch; ///< from the begin of one to that of the next
};

/// What a copy moves between two addresses.
struct CopyShape {
  CopyShape(size_t bytes)
      : bytes(bytes), rows(1), toPitch(bytes), fromPitch(bytes) {}
  /// Rows without gaps on both sides are one.
  CopyShape(const Rows &to, const Rows &from)
      : bytes(from.bytes), rows(from.count), toPitch(to.pitch),
        fromPitch(from.pitch) {
    if (toPitch == bytes && fromPitch == bytes)
      *this = CopyShape(from.size());
  }

  size_t size() const { return bytes * rows; }
  /// From the first byte to the last.
  size_t toSpan() const { return (rows - 1) * toPitch + bytes; }
  size_t fromSpan() const { return (rows - 1) * fromPitch + bytes; }

  size_t bytes; ///< of a row
  size_t rows;
  size_t toPitch, fromPitch;
};

/// In memory of the host.
inline void copyRows(std::byte *to, const std::byte *from,
                     const CopyShape &shape) {
  for (size_t row = 0; row < shape.rows && shape.bytes; ++row)
    std::memcpy(to + row * shape.toPitch, from + row * shape.fromPitch,
                shape.bytes);
}

} // namespace costate::runtime
