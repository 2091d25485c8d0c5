#include "runtime/simt/Block.h"

#include "base/CommonSums.h"
#include "base/RangeSums.h"
#include "runtime/simt/Fiber.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <csetjmp>
#include <deque>
#include <limits>
#include <new>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace costate::runtime::simt {
namespace {

constexpr int64_t warpSize = 32;

/// How a thread ends: it returns, or one of these is given to longjmp.
enum Ending { Returned, Left, CalledCollective };

thread_local std::jmp_buf *escape;

/// Nothing here has a destructor: errors arrive by longjmp.
int runThread(const BlockWork &work, int64_t inBlock) {
  std::jmp_buf here;
  escape = &here;
  switch (_setjmp(here)) {
  case Returned:
    work.entry(work.words, work.block * work.blockThreads + inBlock,
               work.threads, work.memory);
    return Returned;
  case Left:
    return Left;
  default:
    return CalledCollective;
  }
}

/// What threads wait for each other at.
enum class Collective { Maximum, Sum, WarpBarrier, Barrier };

std::string textOf(Collective collective) {
  switch (collective) {
  case Collective::Maximum:
    return "a maximum over the warp";
  case Collective::Sum:
    return "a sum over the warp";
  case Collective::WarpBarrier:
    return "a barrier of the warp";
  case Collective::Barrier:
    return "a barrier of the block";
  }
  return "";
}

struct Lane {
  bool ended = false, waits = false;
  Collective collective = {};
  int64_t place = 0;  ///< in the code; of a sum its CostateSums
  uint64_t value = 0; ///< given, and then the result
};

class Block {
public:
  Block(const BlockWork &work, uint64_t seed);
  Result<> run();

  /// Called by the fibre that runs.
  uint64_t meet(Collective collective, uint64_t value, int64_t place);

  const BlockWork &work;
  size_t current = 0;
  std::vector<Lane> lanes;

private:
  void resume(size_t lane);
  void runReady();
  size_t chooseNext();
  void abandon();
  std::span<Lane> warpOf(size_t lane);
  bool contradicts(const Lane &lane, const Lane &other) const;
  bool haveMet(std::span<const Lane> lanes, Collective collective) const;
  void release(std::span<Lane> lanes);
  void releaseMet(size_t lane);
  static void shareMaximum(std::span<Lane> warp);
  static void addUp(std::span<Lane> warp);
  void refuse(const Lane &lane, const Lane &other);

  std::minstd_rand chance;
  const uint32_t patience = 1u << chance() % 10;
  std::deque<Fiber> fibers;
  std::vector<size_t> ready;
  Result<> result;
};

thread_local Block *running;

Block::Block(const BlockWork &work, uint64_t seed)
    : work(work), chance(static_cast<uint32_t>(seed)),
      lanes(static_cast<size_t>(work.blockThreads)) {
  for (size_t k = 0; k < lanes.size(); ++k) {
    fibers.emplace_back([this, k] {
      if (result)
        runThread(this->work, static_cast<int64_t>(k));
    });
    ready.push_back(k);
  }
}

Result<> Block::run() {
  Block *around = std::exchange(running, this);
  runReady();
  if (!result)
    abandon();
  running = around;
  assert(std::ranges::all_of(lanes, &Lane::ended));
  return result;
}

void Block::runReady() {
  while (!ready.empty() && result) {
    if (work.mustEnd()) {
      result = interruptedFailure("");
      return;
    }
    auto next = ready.begin() + static_cast<ptrdiff_t>(chooseNext());
    size_t lane = std::exchange(*next, ready.back());
    ready.pop_back();
    resume(lane);
  }
}

/// A place in `ready`. Often in the same warp as before, so that warps come to
/// be far apart.
size_t Block::chooseNext() {
  auto others = std::partition(ready.begin(), ready.end(), [&](size_t lane) {
    return lane / warpSize == current / warpSize;
  });
  auto same = static_cast<size_t>(others - ready.begin());
  bool stays = same && chance() % patience;
  return chance() % (stays ? same : ready.size());
}

/// Fibres must end: after a failure none does more than that.
void Block::abandon() {
  for (size_t k = 0; k < lanes.size(); ++k)
    if (!lanes[k].ended)
      resume(k);
}

void Block::resume(size_t lane) {
  current = lane;
  fibers[lane].resume();
  if (!fibers[lane].hasEnded())
    return;
  lanes[lane].ended = true;
  releaseMet(lane);
}

std::span<Lane> Block::warpOf(size_t lane) {
  size_t first = lane / warpSize * warpSize;
  return std::span(lanes).subspan(
      first, std::min<size_t>(warpSize, lanes.size() - first));
}

uint64_t Block::meet(Collective collective, uint64_t value, int64_t place) {
  std::jmp_buf *own = escape;
  size_t number = current;
  Lane &lane = lanes[number];
  lane.waits = true;
  lane.collective = collective;
  lane.place = place;
  lane.value = value;
  for (const Lane &other : warpOf(number))
    if (contradicts(lane, other))
      refuse(lane, other);
  releaseMet(number);
  if (result)
    fibers[number].suspend();
  escape = own;
  if (!result)
    std::longjmp(*escape, Left);
  return lane.value;
}

/// Whether two lanes of a warp wait for each other for ever.
bool Block::contradicts(const Lane &lane, const Lane &other) const {
  return other.waits &&
         (other.collective != lane.collective || other.place != lane.place);
}

void Block::refuse(const Lane &lane, const Lane &other) {
  size_t warp = static_cast<size_t>(&lane - lanes.data()) / warpSize;
  auto laneOf = [&](const Lane &one) {
    return std::to_string(static_cast<size_t>(&one - lanes.data()) % warpSize);
  };
  result =
      Failure{ErrorCode::Internal,
              "two lanes of warp " + std::to_string(warp) + " of block " +
                  std::to_string(work.block) + " wait for each other: lane " +
                  laneOf(other) + " at " + textOf(other.collective) +
                  ", lane " + laneOf(lane) + " at " + textOf(lane.collective) +
                  (lane.place == other.place ? "" : " elsewhere")};
}

bool Block::haveMet(std::span<const Lane> some, Collective collective) const {
  return std::ranges::all_of(some, [&](const Lane &lane) {
    return lane.ended || (lane.waits && lane.collective == collective);
  });
}

void Block::releaseMet(size_t lane) {
  std::span<Lane> warp = warpOf(lane);
  if (haveMet(warp, Collective::Maximum)) {
    shareMaximum(warp);
    release(warp);
  } else if (haveMet(warp, Collective::Sum)) {
    addUp(warp);
    release(warp);
  } else if (haveMet(warp, Collective::WarpBarrier)) {
    release(warp);
  }
  if (haveMet(lanes, Collective::Barrier))
    release(lanes);
}

void Block::shareMaximum(std::span<Lane> warp) {
  uint64_t most = 0;
  for (const Lane &lane : warp)
    most = lane.ended ? most : std::max(most, lane.value);
  for (Lane &lane : warp)
    lane.value = most;
}

/// In the order in which a GPU's lanes pass numbers down. Only the first lane
/// may use what it gets.
void Block::addUp(std::span<Lane> warp) {
  std::array<double, warpSize> terms;
  int64_t kind = costateFloatSums;
  for (const Lane &lane : warp)
    kind = lane.ended ? kind : lane.place;
  terms.fill(costateNoSum(kind));
  for (size_t k = 0; k < warp.size(); ++k) {
    if (!warp[k].ended)
      terms[k] = std::bit_cast<double>(warp[k].value);
    warp[k].value =
        std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN());
  }
  for (size_t step = warpSize / 2; step; step /= 2)
    for (size_t k = 0; k < step; ++k)
      terms[k] = costateAddUp(kind, terms[k], terms[k + step]);
  warp[0].value = std::bit_cast<uint64_t>(terms[0]);
}

void Block::release(std::span<Lane> some) {
  for (Lane &lane : some) {
    if (lane.waits)
      ready.push_back(static_cast<size_t>(&lane - lanes.data()));
    lane.waits = false;
  }
}

} // namespace

void leaveThread() { std::longjmp(*escape, Left); }

Result<> runSerially(const BlockWork &work) {
  for (int64_t k = 0; k < work.blockThreads; ++k) {
    if (work.mustEnd())
      return interruptedFailure("");
    if (runThread(work, k) == CalledCollective)
      return Failure{ErrorCode::Internal,
                     "a thread waits for others of its block, but the function "
                     "is not said to be collective"};
  }
  return {};
}

Result<> runTogether(const BlockWork &work, uint64_t seed) try {
  return Block(work, seed).run();
} catch (const std::bad_alloc &) {
  return Failure{ErrorCode::OutOfMemory,
                 "the system has no memory left for the stacks of a block"};
}

static Block &runningBlock() {
  if (!running)
    std::longjmp(*escape, CalledCollective);
  return *running;
}

static uint64_t meet(Collective collective, uint64_t value, int64_t place = 0) {
  return runningBlock().meet(collective, value, place);
}

static std::pair<unsigned, unsigned> placeInBlock() {
  const Block &block = runningBlock();
  return {static_cast<unsigned>(block.current),
          static_cast<unsigned>(block.lanes.size())};
}

} // namespace costate::runtime::simt

using namespace costate::runtime;

uint64_t costate::runtime::costate_device_warp_max(uint64_t value) {
  return simt::meet(simt::Collective::Maximum, value);
}

void costate::runtime::costate_device_warp_barrier() {
  simt::meet(simt::Collective::WarpBarrier, 0);
}

void costate::runtime::costate_device_block_barrier() {
  simt::meet(simt::Collective::Barrier, 0);
}

void costate::runtime::costate_device_add_in_block_f32(float *place,
                                                       float value,
                                                       int64_t elements) {
  costateAddCommonF32(place, value, elements);
}

void costate::runtime::costate_device_add_in_block_f64(double *place,
                                                       double value,
                                                       int64_t elements) {
  costateAddCommonF64(place, value, elements);
}

void costate::runtime::costate_device_begin_in_block() {
  auto [thread, threads] = simt::placeInBlock();
  costateClearCommon(thread, threads);
  costate_device_block_barrier();
}

void costate::runtime::costate_device_end_in_block() {
  costate_device_block_barrier();
  auto [thread, threads] = simt::placeInBlock();
  costateFlushCommon(thread, threads);
}

uint64_t costate::runtime::costate_device_warp_max_at(uint64_t value,
                                                      int64_t place) {
  return simt::meet(simt::Collective::Maximum, value, place);
}

double costate::runtime::costate_device_warp_fold(double value, int64_t kind) {
  return std::bit_cast<double>(
      simt::meet(simt::Collective::Sum, std::bit_cast<uint64_t>(value), kind));
}

double costate::runtime::costate_device_warp_add(double value) {
  return costate_device_warp_fold(value, costateFloatSums);
}

int64_t costate::runtime::costate_device_block_threads() {
  return simt::runningBlock().work.blockThreads;
}
