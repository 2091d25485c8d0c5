#pragma once
/// What the host keeps of memory of a GPU, in memory that the GPU copies
/// itself.

#include "base/Fork.h"
#include "runtime/HostCopies.h"
#include "runtime/gpu/PinnedMemory.h"
#include "runtime/gpu/SideStream.h"

#include <array>
#include <memory>

namespace costate::runtime::gpu {

/// Large copies go through memory of the device, from where a second stream
/// takes them while launches run on. Small ones, and all of a driver without a
/// second stream, are queued among launches.
class PinnedCopies final : public HostCopies {
public:
  explicit PinnedCopies(Memory &memory);
  ~PinnedCopies() override;

  Result<Buffer> borrow(size_t bytes) override;
  void giveBack(Buffer buffer) override;
  Result<> save(Buffer to, std::span<const Rows> from) override;
  Result<> load(std::span<const Rows> to, Buffer from) override;
  void trim() override;

private:
  enum class Way { Save, Load };
  Result<> transfer(Way way, Buffer buffer, std::span<const Rows> rows);
  Result<> open();
  Result<> straight(Way way, std::byte *packed, std::span<const Rows> rows);
  Result<> straightInOrder(Way way, std::byte *packed,
                           std::span<const Rows> rows);
  Result<> through(size_t place, Way way, std::byte *at,
                   std::span<const Rows> rows, size_t bytes);
  Result<> reserve(size_t place, size_t bytes);
  Result<> release(size_t place);

  Memory &memory;
  Mutex mutex; ///< guards what follows
  PinnedMemory host;
  std::array<Buffer, SideStream::places> between; ///< by place
  size_t next = 0;                                ///< place
  bool isOpen = false;
  std::unique_ptr<SideStream> side; ///< null: there is none
};

} // namespace costate::runtime::gpu
