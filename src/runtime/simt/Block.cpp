#include "runtime/simt/Block.h"

#include "base/CommonSums.h"
#include "base/RangeSums.h"
#include "costate/detail/group.h"
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

/// What kernels call a warp, on devices of wider ones a part of it.
constexpr int64_t groupSize = 32;

/// How a thread ends: it returns, or one of these is given to longjmp.
enum Ending { Returned, Left, CalledCollective };

thread_local std::jmp_buf *escape;
/// Of the block that runs.
thread_local int64_t blockThreads;

/// Nothing here has a destructor: errors arrive by longjmp.
int runThread(const BlockWork &work, int64_t inBlock) {
  std::jmp_buf here;
  escape = &here;
  blockThreads = work.blockThreads;
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
enum class Collective {
  Maximum,
  Sum,
  WarpBarrier,
  Barrier,
  Lanes,
  Active,
  Together
};

using syntax::GroupOp;

const char *nameOf(GroupOp op) {
  static constexpr const char *names[] = {
#define COSTATE_GROUP(Name, name, operands, result) "`" name "`",
#include "costate/detail/group_operations.def"
  };
  return names[static_cast<size_t>(op)];
}

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
  case Collective::Lanes:
  case Collective::Active:
  case Collective::Together:
    return "an operation of the warp";
  }
  return "";
}

constexpr uint32_t allLanes = ~0u;

/// What a lane waits for.
struct Wait {
  Collective collective = {};
  int64_t place = 0;        ///< in the code; of a sum its CostateSums
  uint32_t mask = allLanes; ///< the lanes of a group that do it together
  GroupOp op = {};          ///< of Lanes
  int32_t distance = 0;     ///< of shuffles: a lane, or how far it is
  LaneOp lanesDo = {};      ///< of Together
  std::vector<int64_t> path = {};

  bool operator==(const Wait &other) const {
    return collective == other.collective && place == other.place &&
           mask == other.mask && op == other.op && path == other.path;
  }
  std::string text() const {
    if (collective == Collective::Lanes)
      return nameOf(op);
    if (collective == Collective::Barrier && place)
      return nameOf(GroupOp::BlockSync);
    return textOf(collective);
  }
};

struct Lane {
  bool ended = false, waits = false;
  Wait wait = {};
  uint64_t value = 0; ///< given, and then the result
};

/// What lane `own` gets of the lanes `here`, all of which are those of its mask
/// that have not ended. From others it gets nothing that makes sense.
uint64_t resultOf(std::span<const Lane> group, uint32_t here, size_t own) {
  const Lane &lane = group[own];
  auto distance = static_cast<uint32_t>(lane.wait.distance);
  auto from = [&](int64_t other) {
    bool isHere = other < std::ssize(group) && (here >> other & 1);
    return isHere ? group[static_cast<size_t>(other)].value : ~uint64_t(0);
  };
  auto lanesWith = [&](uint64_t value) {
    uint32_t found = 0;
    for (size_t k = 0; k < group.size(); ++k)
      found |= uint32_t((here >> k & 1) && group[k].value == value) << k;
    return found;
  };
  auto self = static_cast<int64_t>(own);
  switch (lane.wait.op) {
  case GroupOp::Shuffle:
    return from(distance % groupSize);
  case GroupOp::ShuffleXor:
    return from((self ^ distance) % groupSize);
  case GroupOp::ShuffleUp: {
    int64_t other = self - lane.wait.distance;
    return from(other < 0 ? self : other);
  }
  case GroupOp::ShuffleDown: {
    int64_t other = self + lane.wait.distance;
    return from(other >= groupSize ? self : other);
  }
  case GroupOp::All:
    return lanesWith(0) == 0;
  case GroupOp::Any:
    return lanesWith(1) != 0;
  case GroupOp::Unique:
    return lanesWith(1) == 0 || lanesWith(0) == 0;
  case GroupOp::Ballot:
    return lanesWith(1);
  case GroupOp::MatchAny:
    return lanesWith(lane.value);
  case GroupOp::MatchAll:
    return lanesWith(lane.value) == here ? lane.wait.mask : 0;
  case GroupOp::WarpSync:
  case GroupOp::ActiveMask:
  case GroupOp::ThreadIndex:
  case GroupOp::GlobalThreadIndex:
  case GroupOp::BlockSync:
  case GroupOp::BlockFence:
  case GroupOp::GridFence:
    return 0;
  }
  return 0;
}

class Block {
public:
  Block(const BlockWork &work, uint64_t seed);
  Result<> run();

  /// Called by the fibre that runs.
  uint64_t meet(const Wait &wait, uint64_t value);

  const BlockWork &work;
  size_t current = 0;
  std::vector<Lane> lanes;

private:
  void resume(size_t lane);
  void runReady();
  size_t chooseNext();
  void abandon();
  size_t warpSize() const { return static_cast<size_t>(work.lanes); }
  /// Those of its warp, and of what kernels call one.
  std::span<Lane> warpOf(size_t lane) { return partOf(lane, warpSize()); }
  std::span<Lane> groupOf(size_t lane) { return partOf(lane, groupSize); }
  std::span<Lane> partOf(size_t lane, size_t size);
  size_t numberOf(const Lane &lane) const;
  size_t inGroup(const Lane &lane) const;
  bool needs(const Lane &lane, const Lane &other) const;
  bool contradicts(const Lane &lane, const Lane &other) const;
  bool haveMet(std::span<const Lane> lanes, Collective collective) const;
  void release(Lane &lane);
  void release(std::span<Lane> lanes);
  void releaseMet(size_t lane);
  void releaseBlock();
  void releaseLanes(std::span<Lane> group, const Lane &lane);
  void releaseActive(std::span<Lane> group);
  void releaseTogether(std::span<Lane> warp);
  static void shareMaximum(std::span<Lane> warp);
  void addUp(std::span<Lane> warp) const;
  void refuse(const Lane &lane, const Lane &other);

  std::minstd_rand chance;
  const uint32_t patience = 1u << chance() % 10;
  std::deque<Fiber> fibers;
  std::vector<size_t> ready;
  Result<> result;
};

thread_local Block *running;

Block::Block(const BlockWork &work, uint64_t seed)
    : work(work), lanes(static_cast<size_t>(work.blockThreads)),
      chance(static_cast<uint32_t>(seed)) {
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
    return lane / warpSize() == current / warpSize();
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

std::span<Lane> Block::partOf(size_t lane, size_t size) {
  size_t first = lane / size * size;
  return std::span(lanes).subspan(first, std::min(size, lanes.size() - first));
}

uint64_t Block::meet(const Wait &wait, uint64_t value) {
  std::jmp_buf *own = escape;
  size_t number = current;
  Lane &lane = lanes[number];
  lane.waits = true;
  lane.wait = wait;
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

size_t Block::numberOf(const Lane &lane) const {
  return static_cast<size_t>(&lane - lanes.data());
}

size_t Block::inGroup(const Lane &lane) const {
  return numberOf(lane) % groupSize;
}

/// Whether `lane`, of the same warp, waits until `other` comes to the same.
bool Block::needs(const Lane &lane, const Lane &other) const {
  switch (lane.wait.collective) {
  case Collective::Active:
  case Collective::Together:
    return false;
  case Collective::Barrier: // the other one may come to it later
    return other.wait.collective == Collective::Barrier;
  case Collective::Maximum:
  case Collective::Sum:
  case Collective::WarpBarrier:
    return other.wait.collective != Collective::Active;
  case Collective::Lanes:
    return other.wait.collective != Collective::Active &&
           numberOf(lane) / groupSize == numberOf(other) / groupSize &&
           (lane.wait.mask >> inGroup(other) & 1);
  }
  return false;
}

/// Whether two lanes of a warp wait for each other for ever.
bool Block::contradicts(const Lane &lane, const Lane &other) const {
  return other.waits && (needs(lane, other) || needs(other, lane)) &&
         lane.wait != other.wait;
}

void Block::refuse(const Lane &lane, const Lane &other) {
  auto inWarp = [&](const Lane &one) { return numberOf(one) % warpSize(); };
  auto warp = [&](const Lane &one) { return numberOf(one) / warpSize(); };
  auto laneOf = [&](const Lane &one) {
    return std::to_string(inWarp(one)) +
           (warp(one) == warp(lane) ? ""
                                    : " of warp " + std::to_string(warp(one)));
  };
  bool isOfUser = lane.wait.collective == Collective::Lanes ||
                  other.wait.collective == Collective::Lanes ||
                  (lane.wait.collective == Collective::Barrier &&
                   other.wait.collective == Collective::Barrier);
  result =
      Failure{isOfUser ? ErrorCode::BadKernel : ErrorCode::Internal,
              "two lanes of warp " + std::to_string(warp(lane)) + " of block " +
                  std::to_string(work.block) + " wait for each other: lane " +
                  laneOf(other) + " at " + other.wait.text() + ", lane " +
                  laneOf(lane) + " at " + lane.wait.text() +
                  (lane.wait.text() == other.wait.text() ? " elsewhere" : "")};
}

bool Block::haveMet(std::span<const Lane> some, Collective collective) const {
  return std::ranges::all_of(some, [&](const Lane &lane) {
    return lane.ended || (lane.waits && lane.wait.collective == collective);
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
  releaseTogether(warp);
  std::span<Lane> group = groupOf(lane);
  for (const Lane &one : group)
    if (one.waits && one.wait.collective == Collective::Lanes)
      releaseLanes(group, one);
  releaseActive(group);
  releaseBlock();
}

/// Unless warps wait at different barriers.
void Block::releaseBlock() {
  if (!haveMet(lanes, Collective::Barrier))
    return;
  const Lane *first = nullptr;
  for (const Lane &lane : lanes) {
    if (lane.ended)
      continue;
    first = first ? first : &lane;
    if (lane.wait != first->wait)
      return refuse(lane, *first);
  }
  release(lanes);
}

/// Those of the mask of `lane`, once all of them have come.
void Block::releaseLanes(std::span<Lane> group, const Lane &lane) {
  uint32_t mask = lane.wait.mask, here = 0;
  for (size_t k = 0; k < group.size(); ++k) {
    if (!(mask >> k & 1) || group[k].ended)
      continue;
    if (!group[k].waits || group[k].wait != lane.wait)
      return;
    here |= 1u << k;
  }
  std::array<uint64_t, groupSize> results = {};
  for (size_t k = 0; k < group.size(); ++k)
    if (here >> k & 1)
      results[k] = resultOf(group, here, k);
  for (size_t k = 0; k < group.size(); ++k)
    if (here >> k & 1) {
      group[k].value = results[k];
      release(group[k]);
    }
}

/// Once all lanes wait for something, those that ask at one place which of them
/// are there are those that run together: at the first place, as others may
/// have gone past it and wait where branches end.
void Block::releaseActive(std::span<Lane> group) {
  const Lane *first = nullptr;
  for (const Lane &lane : group) {
    if (!lane.ended && !lane.waits)
      return;
    if (lane.waits && lane.wait.collective == Collective::Active &&
        (!first || lane.wait.place < first->wait.place))
      first = &lane;
  }
  if (!first)
    return;
  Wait together = first->wait;
  uint32_t mask = 0;
  for (const Lane &lane : group)
    mask |= uint32_t(lane.waits && lane.wait == together) << inGroup(lane);
  for (Lane &lane : group)
    if (lane.waits && lane.wait == together) {
      lane.value = mask;
      release(lane);
    }
}

/// Once all lanes wait for something, those that stand at the least path.
void Block::releaseTogether(std::span<Lane> warp) {
  const Lane *first = nullptr;
  for (const Lane &lane : warp) {
    if (!lane.ended && !lane.waits)
      return;
    if (lane.waits && lane.wait.collective == Collective::Together &&
        (!first || lane.wait.path < first->wait.path))
      first = &lane;
  }
  if (!first)
    return;
  std::vector<size_t> here;
  for (size_t k = 0; k < warp.size(); ++k)
    if (warp[k].waits && warp[k].wait == first->wait)
      here.push_back(k);
  std::vector<uint64_t> values(warp.size());
  uint64_t ballot = 0;
  for (size_t k : here) {
    values[k] = warp[k].value;
    ballot |= (warp[k].value & 1) << k;
  }
  for (size_t k : here) {
    auto from = static_cast<size_t>(warp[k].wait.distance) % warpSize();
    bool isBallot = warp[k].wait.lanesDo == LaneOp::Ballot;
    warp[k].value = isBallot ? ballot : from < warp.size() ? values[from] : 0;
    release(warp[k]);
  }
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
void Block::addUp(std::span<Lane> warp) const {
  int64_t kind = costateFloatSums;
  for (const Lane &lane : warp)
    kind = lane.ended ? kind : lane.wait.place;
  std::vector<double> terms(warpSize(), costateNoSum(kind));
  for (size_t k = 0; k < warp.size(); ++k) {
    if (!warp[k].ended)
      terms[k] = std::bit_cast<double>(warp[k].value);
    warp[k].value =
        std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN());
  }
  for (size_t step = warpSize() / 2; step; step /= 2)
    for (size_t k = 0; k < step; ++k)
      terms[k] = costateAddUp(kind, terms[k], terms[k + step]);
  warp[0].value = std::bit_cast<uint64_t>(terms[0]);
}

void Block::release(Lane &lane) {
  if (lane.waits)
    ready.push_back(static_cast<size_t>(&lane - lanes.data()));
  lane.waits = false;
}

void Block::release(std::span<Lane> some) {
  for (Lane &lane : some)
    release(lane);
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
  return runningBlock().meet({collective, place}, value);
}

/// A lane waits for those of `mask`, of which it is one.
static uint64_t meetLanes(GroupOp op, int32_t mask, uint64_t value,
                          int32_t distance, int64_t site) {
  Block &block = runningBlock();
  auto lanes = static_cast<uint32_t>(mask) | 1u << block.current % groupSize;
  return block.meet({Collective::Lanes, site, lanes, op, distance}, value);
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

int64_t costate::runtime::costate_device_lanes() {
  return simt::runningBlock().work.lanes;
}

int64_t costate::runtime::costate_device_block_threads() {
  return simt::blockThreads;
}

uint64_t costate::runtime::simt::together(LaneOp op, uint64_t value,
                                          int32_t from, const int64_t *path,
                                          int64_t length) {
  Wait wait{Collective::Together};
  wait.distance = from;
  wait.lanesDo = op;
  wait.path.assign(path, path + length);
  return runningBlock().meet(wait, value);
}

//===-- What kernels call: costate/detail/group_operations.def ------------===//

int32_t costate::runtime::costate_device_block_thread_index(int64_t) {
  return static_cast<int32_t>(simt::runningBlock().current);
}

int32_t costate::runtime::costate_device_block_global_thread_index(int64_t) {
  const simt::BlockWork &work = simt::runningBlock().work;
  return static_cast<int32_t>(work.block * work.blockThreads) +
         costate_device_block_thread_index(0);
}

void costate::runtime::costate_device_block_sync(int64_t site) {
  simt::meet(simt::Collective::Barrier, 0, site + 1);
}

void costate::runtime::costate_device_block_fence(int64_t) {}
void costate::runtime::costate_device_grid_fence(int64_t) {}

void costate::runtime::costate_device_warp_sync(int32_t mask, int64_t site) {
  simt::meetLanes(simt::GroupOp::WarpSync, mask, 0, 0, site);
}

int32_t costate::runtime::costate_device_warp_active_mask(int64_t site) {
  return static_cast<int32_t>(simt::meet(simt::Collective::Active, 0, site));
}

#define COSTATE_SHUFFLE(Op, name)                                              \
  int32_t costate::runtime::costate_device_warp_##name(                        \
      int32_t mask, int32_t value, int32_t distance, int64_t site) {           \
    return static_cast<int32_t>(simt::meetLanes(simt::GroupOp::Op, mask,       \
                                                static_cast<uint32_t>(value),  \
                                                distance, site));              \
  }                                                                            \
  int64_t costate::runtime::costate_device_warp_##name##_i64(                  \
      int32_t mask, int64_t value, int32_t distance, int64_t site) {           \
    return static_cast<int64_t>(simt::meetLanes(simt::GroupOp::Op, mask,       \
                                                static_cast<uint64_t>(value),  \
                                                distance, site));              \
  }
COSTATE_SHUFFLE(Shuffle, shuffle)
COSTATE_SHUFFLE(ShuffleUp, shuffle_up)
COSTATE_SHUFFLE(ShuffleDown, shuffle_down)
COSTATE_SHUFFLE(ShuffleXor, shuffle_xor)

#define COSTATE_VOTE(Op, name)                                                 \
  int32_t costate::runtime::costate_device_warp_##name(                        \
      int32_t mask, int32_t value, int64_t site) {                             \
    return static_cast<int32_t>(simt::meetLanes(                               \
        simt::GroupOp::Op, mask, static_cast<uint32_t>(value), 0, site));      \
  }
COSTATE_VOTE(All, all)
COSTATE_VOTE(Any, any)
COSTATE_VOTE(Unique, unique)
COSTATE_VOTE(Ballot, ballot)
COSTATE_VOTE(MatchAny, match_any)
COSTATE_VOTE(MatchAll, match_all)
