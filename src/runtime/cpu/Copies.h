#pragma once
/// Copies of arrays that a range only adds to, so that no addition is atomic.

#include "code/KernelCode.h"
#include "runtime/cpu/BlockPool.h"
#include "runtime/cpu/ThreadPool.h"

#include <span>
#include <vector>

namespace costate::runtime::cpu {

/// Of floats in small arrays each part of the range has copies: the work items
/// that one thread takes, in their order, so that the order of additions does
/// not depend on the number of threads. Of larger arrays, and of integers, each
/// runner has one, but for the first: it adds to the array itself.
class Copies {
public:
  static constexpr int64_t mostParts = 64;

  /// None of `arrays` if not `isWanted`, or without memory for them. With one
  /// of `runners`, nobody else adds to the arrays themselves.
  Copies(BlockPool &blocks, std::span<const CopiedArray> arrays,
         int64_t workItems, bool isWanted, int runners);
  ~Copies();
  Copies(const Copies &) = delete;
  Copies &operator=(const Copies &) = delete;

  bool hasParts() const { return parts.block != nullptr; }
  /// Before `runner` begins, the number of one that is at work only once.
  void beginRunner(int runner);
  /// Clears what `part` adds to, and says where that is. Of a runner only one
  /// part is at work.
  const CopyPlace *beginPart(int64_t part, int runner);
  /// Adds everything up, of the first `count` parts, in their order.
  void addUp(int64_t count, ThreadPool &team);

private:
  enum class Owner : uint8_t { None, Part, Runner };

  /// Copies of several arrays, for each owner of a kind.
  struct Set {
    size_t bytes = 0;   ///< of one owner
    int64_t owners = 0; ///< that have copies
    std::byte *block = nullptr;

    size_t add(size_t more);
    void take(BlockPool &blocks, int64_t count);
    std::byte *of(int64_t owner) const { return block + owner * bytes; }
  };
  struct Copied {
    Owner owner = Owner::None;
    size_t offset = 0; ///< in what an owner has
  };

  void choose(int64_t workItems);
  void addUpParts(int64_t count);
  void addUpRunners(ThreadPool &team);
  void addUpPiece(int64_t piece, int64_t pieces);
  CopyPlace placeOf(size_t array, int64_t part, int runner) const;

  BlockPool &blocks;
  std::span<const CopiedArray> arrays;
  const int runners;
  std::vector<Copied> copied; ///< by array
  Set parts, others;          ///< of runners but for the first
  std::vector<uint8_t> hasBegun;
  std::vector<CopyPlace> places; ///< of all runners
};

} // namespace costate::runtime::cpu
