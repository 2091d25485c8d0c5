#pragma once
/// Commands that are recorded, and all that they need until they have run.

#include "runtime/vulkan/Pool.h"

#include <span>

namespace costate::runtime::vulkan {

/// Memory that does not change once it is written.
struct Tables {
  static Result<std::shared_ptr<const Tables>>
  make(Session &session, std::shared_ptr<Pool> pool, const std::string &bytes);
  ~Tables() { pool->release(address); }

  std::shared_ptr<Pool> pool;
  uint64_t address = 0;
};

/// A kernel for one size of block.
struct Pipeline {
  explicit Pipeline(std::shared_ptr<Session> session)
      : session(std::move(session)) {}
  ~Pipeline() {
    session->api().vkDestroyPipeline(session->device(), handle, nullptr);
  }
  Pipeline(const Pipeline &) = delete;

  VkPipeline handle = VK_NULL_HANDLE;
  int registers = 0;     ///< of a thread, if the driver tells
  uint64_t loopCell = 0; ///< where it tells that its loops were cut
  std::shared_ptr<const Tables> tables; ///< that its code reads

private:
  std::shared_ptr<Session> session;
};

/// Memory that the host writes while it records.
class Arguments {
public:
  explicit Arguments(std::shared_ptr<Pool> pool) : pool(std::move(pool)) {}
  ~Arguments();
  Arguments(const Arguments &) = delete;

  Status take(size_t bytes, Piece &piece);
  /// Nothing that is queued needs them any more.
  void clear();
  size_t bytes() const { return used; }
  Place placeOf(const Piece &piece) const { return pool->find(piece.address); }

private:
  struct Chunk {
    Piece start = {};
    size_t bytes = 0;
  };
  void releaseFrom(size_t first);
  Status advance(size_t bytes);

  std::shared_ptr<Pool> pool;
  std::vector<Chunk> chunks;
  size_t current = 0; ///< chunks in use
  Piece next;         ///< in the last one of them
  size_t room = 0;    ///< there
  size_t used = 0;
};

/// In the order of the calls, except that only `wait` makes commands wait for
/// those before. One thread at a time.
class Commands {
public:
  /// Commands that are `kept` run as part of others, as often as wanted.
  Commands(std::shared_ptr<Session> session, std::shared_ptr<Pool> pool,
           bool kept = false)
      : session(std::move(session)), isKept(kept), arguments(std::move(pool)) {}
  ~Commands();
  Commands(const Commands &) = delete;

  Status begin();
  /// What the device has written until here, the host can read afterwards.
  Status end();
  /// Has run; begin() may come again.
  void clear();

  void wait();
  Status launch(const std::shared_ptr<Pipeline> &pipeline, int64_t blocks,
                std::span<const uint64_t> words);
  void copy(Place to, Place from, const CopyShape &shape);
  /// The bytes at `from` may change at once; a few.
  Status write(Place to, const void *from, size_t bytes);
  /// `to` and `bytes` are multiples of 4.
  void fill(Place to, size_t bytes, uint32_t word);
  void run(std::shared_ptr<Commands> others);

  VkCommandBuffer handle() const { return buffer; }
  size_t count() const { return recorded; }
  size_t argumentBytes() const { return arguments.bytes(); }

private:
  Status open();
  void barrier(VkPipelineStageFlags after, VkAccessFlags seen);

  std::shared_ptr<Session> session;
  const bool isKept;
  VkCommandPool commandPool = VK_NULL_HANDLE;
  VkCommandBuffer buffer = VK_NULL_HANDLE;
  Arguments arguments;
  std::vector<std::shared_ptr<const void>> uses;
  size_t recorded = 0;
};

} // namespace costate::runtime::vulkan
