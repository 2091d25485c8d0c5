#include "costate/detail/carried.h"

#include "syntax/Linear.h"
#include "syntax/Operands.h"
#include "syntax/Trace.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <span>

namespace costate::syntax {

using detail::CarriedElement;

namespace {

/// What branches say of the work items that run a statement.
enum class Guard : uint8_t {
  Bounds, ///< all but some at a border
  Some,   ///< nobody knows which
  One,    ///< one only
};

/// Indices from `low` to `high`.
struct Interval {
  int64_t low = 0, high = std::numeric_limits<int64_t>::max();
};

/// Which work items run a statement; of each index of the range, as far as
/// constants say it.
struct WorkItems {
  Guard guard = Guard::Bounds;
  std::vector<Interval> indices;
};

struct Access {
  const Statement *statement;
  std::span<const ValueId> indices;
  WorkItems by;
};

/// Of one array.
struct Accesses {
  std::vector<Access> reads, changes;
  bool isExchanged = false;
};

/// By how much the index of another work item is greater; none: by something.
using Distance = std::optional<int64_t>;

/// Looks at one range.
class RangeSearch {
public:
  RangeSearch(const Statement &range, const Definitions &definitions)
      : range(range), definitions(definitions), inside(definitions.size()) {
    WorkItems all;
    for (ValueId extent : range.operands) {
      all.indices.emplace_back();
      if (std::optional<int64_t> count = numberOf(extent))
        all.indices.back().high = *count - 1;
    }
    walk(range.blocks[0], all);
  }

  void run(std::vector<CarriedElement> &found);

private:
  void walk(const Block &block, WorkItems items);
  void visit(const Statement &statement, const WorkItems &items);
  void branch(const Statement &statement, WorkItems &items);
  WorkItems taking(WorkItems items, ValueId condition, bool holds) const;
  Guard narrow(WorkItems &items, const Statement &test, bool holds) const;
  void bound(Interval &interval, Op op, int64_t factor, int64_t constant) const;
  std::optional<CarriedElement> carried(uint32_t argument, const Accesses &all);
  std::optional<CarriedElement> carried(const Access &change,
                                        const Access &read) const;
  bool sameConstants(const Accesses &all) const;

  bool meet(const Access &change, const Access &read, bool &isShared) const;
  bool relate(Linear change, Linear read,
              std::map<ValueId, Distance> &distances) const;
  bool relateToLoop(const Linear &own, const Linear &loop,
                    std::map<ValueId, Distance> &distances) const;
  bool overlap(const Linear &a, const Linear &b) const;

  bool isIndex(ValueId value) const {
    return std::ranges::find(range.indices, value) != range.indices.end();
  }
  size_t dimOf(ValueId index) const {
    return std::ranges::find(range.indices, index) - range.indices.begin();
  }
  bool isOne(ValueId index) const;
  ValueId indexIn(const Linear &sum) const;
  bool areShared(const Linear &sum) const;
  bool isShared(ValueId value) const;
  const Statement *loopOf(const Linear &sum) const;
  std::optional<int64_t> numberOf(ValueId value) const;
  int64_t mostTrips(const Statement &loop) const;
  Linear linear(ValueId value) const { return linearOf(value, definitions); }

  const Statement &range;
  const Definitions &definitions;
  std::vector<bool> inside; ///< of the range: values
  std::map<uint32_t, Accesses> arrays;
  bool leavesEarly = false; ///< some work items, of which nobody knows
  bool hasGroups = false;
  int left = 4096; ///< pairs to look at
};

//===-- Accesses ----------------------------------------------------------===//

void RangeSearch::walk(const Block &block, WorkItems items) {
  for (const Statement &statement : block) {
    for (size_t k = 0; k < statement.defines(); ++k)
      inside[statement.value + k] = true;
    visit(statement, items);
    if (statement.kind == Kind::If)
      branch(statement, items);
    else
      for (const Block &inner : statement.blocks)
        walk(inner, items);
  }
}

/// What follows a branch that returns is left to the work items that do not
/// take it.
void RangeSearch::branch(const Statement &statement, WorkItems &items) {
  ValueId condition = statement.operands[0];
  WorkItems others = taking(items, condition, false);
  walk(statement.blocks[0], taking(items, condition, true));
  if (statement.blocks.size() == 2)
    walk(statement.blocks[1], others);
  const Block &first = statement.blocks[0];
  if (!first.empty() && first.back().kind == Kind::Return)
    items = others;
}

void RangeSearch::visit(const Statement &statement, const WorkItems &items) {
  std::span<const ValueId> operands = statement.operands;
  hasGroups |= statement.kind == Kind::Group;
  leavesEarly |= statement.kind == Kind::Return && items.guard == Guard::Some;
  if (statement.kind == Kind::Load)
    arrays[statement.argument].reads.push_back({&statement, operands, items});
  else if (statement.kind == Kind::Store ||
           (statement.kind == Kind::Update && statement.op == Op::Add))
    arrays[statement.argument].changes.push_back(
        {&statement, operands.subspan(1), items});
  else if (statement.kind == Kind::Exchange ||
           statement.kind == Kind::CompareExchange)
    arrays[statement.argument].isExchanged = true;
}

/// Those of `items` for which a condition holds, or does not.
WorkItems RangeSearch::taking(WorkItems items, ValueId condition,
                              bool holds) const {
  const Statement *test = definitions[condition];
  if (test && test->kind == Kind::Pure && test->op == Op::And && holds)
    return taking(taking(std::move(items), test->operands[0], true),
                  test->operands[1], true);
  bool isTest = test && test->kind == Kind::Pure && test->operands.size() == 2;
  Guard guard = isTest ? narrow(items, *test, holds) : Guard::Some;
  items.guard = std::max(items.guard, guard);
  return items;
}

static Op negated(Op comparison) {
  static constexpr std::pair<Op, Op> opposites[] = {
      {Op::Lt, Op::Ge}, {Op::Le, Op::Gt}, {Op::Eq, Op::Ne}};
  for (auto [one, other] : opposites)
    if (comparison == one || comparison == other)
      return comparison == one ? other : one;
  return comparison;
}

Guard RangeSearch::narrow(WorkItems &items, const Statement &test,
                          bool holds) const {
  Op op = holds ? test.op : negated(test.op);
  bool isOrder = op == Op::Lt || op == Op::Le || op == Op::Gt || op == Op::Ge;
  Linear sum = linear(test.operands[0]);
  sum.add(linear(test.operands[1]), -1);
  ValueId index = indexIn(sum);
  int64_t factor = index == none ? 0 : sum.terms[index];
  if (index != none)
    sum.terms.erase(index);
  if (!(isOrder || op == Op::Eq || op == Op::Ne) || !areShared(sum))
    return Guard::Some;
  if (op == Op::Eq)
    return index == none ? Guard::Some : Guard::One;
  if (isOrder && index != none && sum.isConstant())
    bound(items.indices[dimOf(index)], op, factor, sum.constant);
  return Guard::Bounds;
}

/// `factor` * index + `constant` is less than 0, or what else `op` says.
void RangeSearch::bound(Interval &interval, Op op, int64_t factor,
                        int64_t constant) const {
  bool isStrict = op == Op::Lt || op == Op::Gt;
  bool isLess = op == Op::Lt || op == Op::Le;
  if (factor == 1 && isLess)
    interval.high = std::min(interval.high, -constant - isStrict);
  else if (factor == 1)
    interval.low = std::max(interval.low, -constant + isStrict);
  else if (factor == -1 && isLess)
    interval.low = std::max(interval.low, constant + isStrict);
  else if (factor == -1)
    interval.high = std::min(interval.high, constant - isStrict);
}

//===-- Values ------------------------------------------------------------===//

std::optional<int64_t> RangeSearch::numberOf(ValueId value) const {
  Linear sum = linear(value);
  if (!sum.isConstant())
    return std::nullopt;
  return sum.constant;
}

/// Whether an index of the range has one value.
bool RangeSearch::isOne(ValueId index) const {
  return numberOf(range.operands[dimOf(index)]).value_or(2) < 2;
}

/// The only index of the range in a sum, or `none`.
ValueId RangeSearch::indexIn(const Linear &sum) const {
  ValueId found = none;
  for (auto [value, factor] : sum.terms)
    if (isIndex(value)) {
      if (found != none)
        return none;
      found = value;
    }
  return found;
}

bool RangeSearch::areShared(const Linear &sum) const {
  return std::ranges::all_of(
      sum.terms, [&](const auto &term) { return isShared(term.first); });
}

/// Whether a value is the same in all work items, or the index of a loop that
/// all of them begin alike.
bool RangeSearch::isShared(ValueId value) const {
  if (isIndex(value))
    return false;
  const Statement *defined = definitions[value];
  if (!defined || !inside[value])
    return defined;
  return defined->kind == Kind::Scalar || defined->kind == Kind::Extent ||
         (defined->kind == Kind::For &&
          areShared(linear(defined->operands[0])));
}

/// The loop whose index a sum is, but for a constant, if it counts by 1.
const Statement *RangeSearch::loopOf(const Linear &sum) const {
  ValueId root = sum.root();
  const Statement *loop = root == none ? nullptr : definitions[root];
  bool counts = loop && loop->kind == Kind::For && inside[root] &&
                numberOf(loop->operands[2]) == 1;
  return counts ? loop : nullptr;
}

/// The trip count of a loop, if it is known, of one that counts by 1.
int64_t RangeSearch::mostTrips(const Statement &loop) const {
  Linear trips = linear(loop.operands[1]);
  trips.add(linear(loop.operands[0]), -1);
  return trips.isConstant() ? trips.constant
                            : std::numeric_limits<int64_t>::max();
}

//===-- Indices -----------------------------------------------------------===//

/// Whether indices that are the same in all work items have a value in common.
bool RangeSearch::overlap(const Linear &a, const Linear &b) const {
  Linear difference = a;
  difference.add(b, -1);
  if (difference.isConstant() && difference.constant == 0)
    return true;
  const Statement *loops[] = {loopOf(a), loopOf(b)};
  if (difference.isConstant())
    return loops[0] && std::abs(difference.constant) < mostTrips(*loops[0]);
  Linear starts[] = {a, b};
  for (int k = 0; k < 2; ++k)
    if (loops[k]) {
      starts[k] = linear(loops[k]->operands[0]);
      starts[k].constant += (k == 0 ? a : b).constant;
    }
  starts[0].add(starts[1], -1);
  return (loops[0] || loops[1]) && starts[0].isConstant() &&
         starts[0].constant == 0;
}

/// `own` has an index of the range, `loop` that of a loop inside, which runs
/// over what others have too.
bool RangeSearch::relateToLoop(const Linear &own, const Linear &loop,
                               std::map<ValueId, Distance> &distances) const {
  const Statement *inner = loopOf(loop);
  ValueId index = own.root();
  if (!inner || index == none || !isIndex(index) || isOne(index))
    return false;
  if (!areShared(linear(inner->operands[0])))
    return false;
  Linear end = linear(inner->operands[1]);
  if (ValueId one = indexIn(end); one == index)
    end.terms.erase(one);
  if (!areShared(end) || mostTrips(*inner) < 2)
    return false;
  return distances.emplace(index, std::nullopt).second;
}

/// Adds what follows for the distance of two work items from the same element
/// in one dimension.
bool RangeSearch::relate(Linear change, Linear read,
                         std::map<ValueId, Distance> &distances) const {
  ValueId index = indexIn(change), other = indexIn(read);
  if ((index == none) != (other == none))
    return index == none ? relateToLoop(read, change, distances)
                         : relateToLoop(change, read, distances);
  if (index == none)
    return areShared(change) && areShared(read) && overlap(change, read);
  int64_t factor = change.terms[index];
  change.add(read, -1);
  if (index != other || !change.isConstant() || change.constant % factor)
    return false;
  read.terms.erase(index);
  Distance distance = change.constant / factor;
  auto [known, isNew] = distances.emplace(index, distance);
  return areShared(read) && (isNew || known->second == distance);
}

/// An end that may be open.
static int64_t shifted(int64_t high, int64_t by) {
  bool isOpen = high == std::numeric_limits<int64_t>::max();
  return isOpen ? high : high + by;
}

/// Whether a work item certainly changes an element that another one reads.
bool RangeSearch::meet(const Access &change, const Access &read,
                       bool &isShared) const {
  std::map<ValueId, Distance> distances;
  for (size_t dim = 0; dim < change.indices.size(); ++dim)
    if (!relate(linear(change.indices[dim]), linear(read.indices[dim]),
                distances))
      return false;
  isShared = distances.empty();
  bool areOthers = false;
  for (size_t dim = 0; dim < range.indices.size(); ++dim) {
    ValueId index = range.indices[dim];
    auto known = distances.find(index);
    if (known == distances.end() || !known->second) {
      areOthers |= !isOne(index);
      continue;
    }
    Interval own = change.by.indices[dim], other = read.by.indices[dim];
    int64_t distance = *known->second;
    if (std::max(own.low, other.low - distance) >
        std::min(own.high, shifted(other.high, -distance)))
      return false;
    areOthers |= distance != 0;
  }
  return areOthers;
}

//===-- The search --------------------------------------------------------===//

std::optional<CarriedElement> RangeSearch::carried(const Access &change,
                                                   const Access &read) const {
  CarriedElement found = {};
  if (change.by.guard == Guard::One || read.by.guard == Guard::One ||
      !meet(change, read, found.isShared))
    return std::nullopt;
  found.isSure =
      !leavesEarly && std::max(change.by.guard, read.by.guard) == Guard::Bounds;
  if (!found.isSure && !found.isShared)
    return std::nullopt;
  found.argument = change.statement->argument;
  found.range = range.loc;
  found.change = change.statement->loc;
  found.read = read.statement->loc;
  found.isAdded = change.statement->kind == Kind::Update;
  return found;
}

/// Whether all stores are of one and the same constant, as of flags.
bool RangeSearch::sameConstants(const Accesses &all) const {
  std::set<uint64_t> constants;
  for (const Access &change : all.changes) {
    const Statement *value = definitions[change.statement->operands[0]];
    if (!value || value->kind != Kind::Const)
      return false;
    constants.insert(value->bits);
  }
  return constants.size() == 1;
}

std::optional<CarriedElement> RangeSearch::carried(uint32_t argument,
                                                   const Accesses &all) {
  std::optional<CarriedElement> best;
  bool isFlag = sameConstants(all);
  for (const Access &change : all.changes)
    for (const Access &read : all.reads) {
      if (--left < 0)
        return best;
      std::optional<CarriedElement> found = carried(change, read);
      if (found && !(isFlag && found->isShared && !found->isAdded) &&
          (!best || (found->isSure && !best->isSure)))
        best = found;
    }
  return best;
}

void RangeSearch::run(std::vector<CarriedElement> &found) {
  if (hasGroups)
    return;
  for (const auto &[argument, all] : arrays)
    if (!all.isExchanged)
      if (std::optional<CarriedElement> one = carried(argument, all))
        found.push_back(*one);
}

/// Looks at the ranges in a block.
void search(const Block &block, const Definitions &definitions,
            std::vector<CarriedElement> &found) {
  for (const Statement &statement : block)
    if (statement.kind == Kind::Range)
      RangeSearch(statement, definitions).run(found);
    else
      for (const Block &inner : statement.blocks)
        search(inner, definitions, found);
}

} // namespace

} // namespace costate::syntax

namespace costate::detail {

std::vector<CarriedElement> carriedElements(const TracedKernel &traced) {
  std::vector<CarriedElement> found;
  if (!traced.failure)
    syntax::search(traced.kernel.body, syntax::definitionsOf(traced.kernel),
                   found);
  return found;
}

} // namespace costate::detail
