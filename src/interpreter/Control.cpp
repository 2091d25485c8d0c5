/// Branches, loops and ranges. Terminators are no instructions: the operation
/// around them moves what they yield.

#include "interpreter/Machine.h"
#include "interpreter/Operations.h"
#include "ir/Kernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>
#include <random>

using namespace mlir;

namespace costate::interpreter {
namespace {

bool branch(Machine &m, const Instruction &op) {
  uint32_t taken = op.block + (m.operand(op, 0) ? 0 : 1);
  if (!m.run(taken))
    return false;
  m.move(m.code.blocks[taken].yields, op.result);
  return true;
}

/// Its second block is for derivatives only.
bool custom(Machine &m, const Instruction &op) {
  const Block &primal = m.code.blocks[op.block];
  m.move(op.operands, primal.argument);
  if (!m.run(op.block))
    return false;
  m.move(primal.yields, op.result);
  return true;
}

Slots dropFront(Slots slots, uint32_t count) {
  return {slots.first + count, slots.count - count};
}

/// The values that a loop carries stand in the arguments of its block.
void copySlots(Machine &m, uint32_t from, uint32_t to, uint32_t count) {
  std::copy_n(m.slots.begin() + from, count, m.slots.begin() + to);
}

int64_t extended(uint64_t bits, const Instruction &op) {
  unsigned unused = 64 - op.operandWidth;
  bool isUnsigned = op.detail;
  return isUnsigned ? bits : static_cast<int64_t>(bits << unused) >> unused;
}

/// Operands: lower bound, upper bound, step, what it carries.
bool countingLoop(Machine &m, const Instruction &op) {
  bool isUnsigned = op.detail;
  uint64_t lo = extended(m.operand(op, 0), op),
           hi = extended(m.operand(op, 1), op),
           step = extended(m.operand(op, 2), op);
  std::optional<uint64_t> tripCount = tripCountOf(lo, hi, step);
  if (!tripCount)
    return m.fail(op, ErrorCode::KernelFailed, stepIsZero);
  if (isUnsigned && lo >= hi)
    tripCount = 0;
  const Block &body = m.code.blocks[op.block];
  uint32_t carried = body.argument + 1;
  uint64_t mask = ~uint64_t(0) >> (64 - op.operandWidth);
  m.move(dropFront(op.operands, 3), carried);
  for (uint64_t iteration = 0; iteration < *tripCount; ++iteration) {
    m.slots[body.argument] = (lo + iteration * step) & mask;
    if (!m.run(op.block))
      return false;
    m.move(body.yields, carried);
  }
  copySlots(m, carried, op.result, op.results);
  return true;
}

bool conditionalLoop(Machine &m, const Instruction &op) {
  const Block &before = m.code.blocks[op.block],
              &after = m.code.blocks[op.block + 1];
  Slots forwarded = dropFront(before.yields, 1);
  m.move(op.operands, before.argument);
  while (true) {
    if (!m.run(op.block))
      return false;
    if (!m.slots[m.code.lists[before.yields.first]])
      break;
    m.move(forwarded, after.argument);
    if (!m.run(op.block + 1))
      return false;
    m.move(after.yields, before.argument);
  }
  m.move(forwarded, op.result);
  return true;
}

//===-- Ranges ------------------------------------------------------------===//

/// The number of work items, unless an i64 cannot count them.
std::optional<uint64_t> workItemsOf(Machine &m, const Instruction &op) {
  unsigned __int128 product = 1;
  bool isEmpty = false, isTooLarge = false;
  for (uint32_t k = 0; k < op.operands.count; ++k) {
    int64_t extent = m.operand(op, k);
    isEmpty |= extent <= 0;
    product *= extent > 0 ? extent : 0;
    isTooLarge |= product > std::numeric_limits<int64_t>::max();
    if (isTooLarge)
      product = 1;
  }
  if (isEmpty)
    return 0;
  return isTooLarge ? std::nullopt : std::optional<uint64_t>(product);
}

std::vector<int64_t> permutation(uint64_t count, uint64_t seed) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::mt19937_64 generator(seed);
  std::shuffle(numbers.begin(), numbers.end(), generator);
  return numbers;
}

void setIndices(Machine &m, const Instruction &op, uint64_t workItem) {
  uint32_t first = m.code.blocks[op.block].argument;
  for (uint32_t d = op.operands.count; d-- > 0;) {
    uint64_t extent = m.operand(op, d);
    m.slots[first + d] = workItem % extent;
    workItem /= extent;
  }
}

enum class Sum : uint32_t { F64, F32, I64, LeastI64 };

Sum kindOf(const Machine &m, const Instruction &op, uint32_t sum) {
  return static_cast<Sum>(m.code.lists[op.detail + sum]);
}

/// What the work item yields, as it is added: floats as f64.
uint64_t yielded(Machine &m, const Instruction &op, uint32_t sum) {
  const Block &body = m.code.blocks[op.block];
  uint64_t bits = m.slots[m.code.lists[body.yields.first + sum]];
  Sum kind = kindOf(m, op, sum);
  if (kind == Sum::I64 || kind == Sum::LeastI64)
    return bits;
  double value = kind == Sum::F32 ? Machine::asFloat<float>(bits)
                                  : Machine::asFloat<double>(bits);
  m.noteAddend(value);
  return Machine::asBits(value);
}

/// The sums of a range. They are added in the order of the work items, in
/// whichever order those run.
class Sums {
public:
  Sums(Machine &m, const Instruction &op, uint64_t workItems, bool shuffled)
      : m(m), op(op) {
    for (uint32_t k = 0; k < op.results; ++k)
      totals.push_back(kindOf(m, op, k) == Sum::LeastI64 ? INT64_MAX : 0);
    if (shuffled)
      all.resize(workItems * op.results);
  }

  void add(uint64_t workItem) {
    std::vector<uint64_t> values;
    for (uint32_t k = 0; k < op.results; ++k)
      values.push_back(yielded(m, op, k));
    if (all.empty())
      add(values.data());
    else
      std::ranges::copy(values, all.begin() + workItem * op.results);
  }

  void finish() {
    for (size_t n = 0; n < all.size(); n += op.results)
      add(&all[n]);
    for (uint32_t k = 0; k < op.results; ++k)
      m.slots[op.result + k] =
          kindOf(m, op, k) == Sum::F32
              ? Machine::asBits(float(Machine::asFloat<double>(totals[k])))
              : totals[k];
  }

private:
  /// The results of one work item.
  void add(const uint64_t *values) {
    if (op.results && kindOf(m, op, 0) == Sum::LeastI64)
      return addPair(values[0], values[1]);
    for (uint32_t k = 0; k < op.results; ++k)
      add(k, values[k]);
  }

  void addPair(int64_t key, int64_t place) {
    if (std::pair(key, place) <
        std::pair(int64_t(totals[0]), int64_t(totals[1])))
      totals = {uint64_t(key), uint64_t(place)};
  }

  void add(uint32_t k, uint64_t value) {
    uint64_t &total = totals[k];
    if (kindOf(m, op, k) == Sum::I64)
      total += value;
    else
      total = Machine::asBits(added(Machine::asFloat<double>(total),
                                    Machine::asFloat<double>(value)));
  }

  double added(double total, double value) {
    return m.roundings.sum(total, value, total + value);
  }

  Machine &m;
  const Instruction &op;
  std::vector<uint64_t> totals, all;
};

bool iterate(Machine &m, const Instruction &op, uint64_t count) {
  bool shuffled = m.options.order != 0;
  std::vector<int64_t> order;
  if (shuffled)
    order = permutation(count, m.options.order + m.ranges);
  Sums sums(m, op, count, shuffled);
  for (uint64_t n = 0; n < count; ++n) {
    m.workItem = shuffled ? order[n] : n;
    m.workItemTape.measured = 0;
    m.workItemTape.isReversed = false;
    setIndices(m, op, m.workItem);
    if (!m.run(op.block) || !m.checkEmpty(op, m.workItemTape))
      return false;
    sums.add(m.workItem);
  }
  sums.finish();
  return true;
}

bool range(Machine &m, const Instruction &op) {
  std::optional<uint64_t> count = workItemsOf(m, op);
  if (!count)
    return m.fail(op, ErrorCode::KernelFailed,
                  "this range has more work items than can be counted; give it "
                  "smaller extents");
  ++m.ranges;
  m.inRange = true;
  bool done = iterate(m, op, *count);
  m.inRange = false;
  return done;
}

/// The detail is a list that tells of each sum what it is.
Handler selectRange(Operation *op, Instruction &instruction, Code &code) {
  instruction.detail = code.lists.size();
  Sum ofIntegers = cast<ir::RangeOp>(op).getMinima() ? Sum::LeastI64 : Sum::I64;
  for (Type type : op->getResultTypes())
    code.lists.push_back(uint32_t(type.isF64()   ? Sum::F64
                                  : type.isF32() ? Sum::F32
                                                 : ofIntegers));
  return range;
}

Handler selectFor(Operation *op, Instruction &instruction, Code &) {
  auto loop = cast<scf::ForOp>(op);
  instruction.detail = loop.getUnsignedCmp();
  instruction.operandWidth = widthOf(loop.getStep().getType());
  return countingLoop;
}

} // namespace

llvm::ArrayRef<KnownOperation> controlOperations() {
  static const KnownOperation known[] = {
      {"scf.if", always<branch>},
      {"scf.for", selectFor},
      {"scf.while", always<conditionalLoop>},
      {"costate.range", selectRange},
      {"costate.custom", always<custom>},
  };
  return known;
}

} // namespace costate::interpreter
