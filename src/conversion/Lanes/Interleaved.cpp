#include "conversion/Lanes/Interleaved.h"

#include "conversion/KernelToLLVM/Runtime.h"
#include "ir/Kernel.h"
#include "sizing/Costs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace costate::conversion {

static bool goesUp(Operation *op) {
  return isa<ir::LoadOp, ir::AtomicTakeOp>(op);
}

Operation *Interleaved::place() const {
  return goesUp(accesses.front()) ? accesses.front() : accesses.back();
}

static std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)) || constant.isNegative())
    return std::nullopt;
  return constant.getSExtValue();
}

/// Each access of a block in its order, and the groups that are still open.
class InterleavedAccesses::Finder {
public:
  Finder(InterleavedAccesses &found, scf::ForOp row, const Shapes &shapes)
      : found(found), shapes(shapes) {
    row.getBody()->walk([&](Operation *op) { measure(op); });
    visit(*row.getBody());
  }

private:
  struct Open {
    Interleaved *group;
    Value array;
    ValueRange indices;            ///< but for those of components
    SmallVector<unsigned> touched; ///< by others, after loads that go up
  };
  using Extents = SmallVector<int64_t, 2>;

  /// How many indices at the end are numbers of components; 0: none are.
  size_t trailing(Operation *op) const {
    if (!isa<ir::LoadOp, ir::StoreOp>(op) &&
        !(isa<ir::AtomicAddOp, ir::AtomicTakeOp>(op) &&
          op->hasAttr("exclusive")))
      return 0;
    auto access = cast<ir::ElementAccess>(op);
    Type element =
        cast<ir::ArrayType>(access.getArray().getType()).getElementType();
    ValueRange indices = access.getIndices();
    size_t count = 0;
    while (count < indices.size() &&
           constantOf(indices[indices.size() - 1 - count]))
      ++count;
    bool isWide = element.getIntOrFloatBitWidth() >= 32;
    return isWide && shapes.areNeighbours(indices.drop_back(count)) ? count : 0;
  }

  void measure(Operation *op) {
    size_t count = trailing(op);
    if (count == 0)
      return;
    auto access = cast<ir::ElementAccess>(op);
    Extents &known =
        extents.try_emplace(access.getArray(), constantsOf(op, count))
            .first->second;
    if (known.size() == count)
      for (auto [extent, index] :
           llvm::zip_equal(known, access.getIndices().take_back(count)))
        extent = std::max(extent, *constantOf(index) + 1);
  }

  /// The last extents of the array of `op`; 0 where they are not constants.
  static Extents constantsOf(Operation *op, size_t count) {
    ArrayView array(cast<ir::ElementAccess>(op).getArray());
    return llvm::map_to_vector<2>(
        array.extents.take_back(count),
        [](Value extent) { return constantOf(extent).value_or(0); });
  }

  static bool areCertain(Operation *op, const Extents &known) {
    return constantsOf(op, known.size()) == known;
  }

  /// Null: `op` has no part in a group.
  const Extents *extentsOf(Operation *op) const {
    size_t count = trailing(op);
    if (count == 0)
      return nullptr;
    auto known = extents.find(cast<ir::ElementAccess>(op).getArray());
    int64_t all = 1, most = areCertain(op, known->second)
                                ? sizing::laneCosts().interleaved
                                : sizing::laneCosts().guessed;
    for (int64_t extent : known->second)
      all = std::min(most + 1, all * extent);
    bool fits = known->second.size() == count && all > 1;
    return fits && all <= most ? &known->second : nullptr;
  }

  void visit(Block &block) {
    SmallVector<Open> outer = std::move(open);
    open.clear();
    for (Operation &op : block) {
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          visit(inner);
      passInner(op);
      if (isa<func::CallOp>(op))
        open.clear();
      else if (isa<ir::ElementAccess>(op))
        visit(&op);
    }
    open = std::move(outer);
  }

  void passInner(Operation &op) {
    for (Region &region : op.getRegions())
      region.walk([&](Operation *inner) {
        if (isa<func::CallOp>(inner))
          open.clear();
        else if (isa<ir::ElementAccess>(inner))
          pass(inner, nullptr, 0);
      });
  }

  void visit(Operation *op) {
    const Extents *known = extentsOf(op);
    if (!known)
      return pass(op, nullptr, 0);
    auto access = cast<ir::ElementAccess>(op);
    unsigned component = 0;
    for (auto [extent, index] :
         llvm::zip_equal(*known, access.getIndices().take_back(known->size())))
      component = component * extent + *constantOf(index);
    Open *own = openOf(op, known->size());
    if (own && !own->group->has(component) &&
        !llvm::is_contained(own->touched, component))
      join(*own->group, op, component);
    else
      begin(op, *known, component, own);
    pass(op, groupOf(op), component);
  }

  Interleaved *groupOf(Operation *op) { return found.groups.lookup(op); }

  void join(Interleaved &group, Operation *op, unsigned component) {
    group.accesses.push_back(op);
    group.components.push_back(component);
    found.groups[op] = &group;
  }

  void begin(Operation *op, const Extents &known, unsigned component,
             Open *old) {
    if (old)
      open.erase(old);
    if (goesUp(op))
      closeStores(cast<ir::ElementAccess>(op).getArray());
    Interleaved &group = found.all.emplace_back();
    group.extents = known;
    for (int64_t extent : known)
      group.count *= extent;
    group.isCertain = areCertain(op, known);
    join(group, op, component);
    auto access = cast<ir::ElementAccess>(op);
    open.push_back({&group,
                    access.getArray(),
                    access.getIndices().drop_back(known.size()),
                    {}});
  }

  /// That `op` can join.
  Open *openOf(Operation *op, size_t count) {
    auto access = cast<ir::ElementAccess>(op);
    for (Open &one : open)
      if (one.group->accesses.front()->getName() == op->getName() &&
          one.array == access.getArray() &&
          one.indices == access.getIndices().drop_back(count))
        return &one;
    return nullptr;
  }

  /// Groups of the array that `op` must not be moved past are complete. `own`
  /// and `component`: of `op`; null if it may touch any component.
  void pass(Operation *op, Interleaved *own, unsigned component) {
    auto access = cast<ir::ElementAccess>(op);
    llvm::erase_if(open, [&](Open &one) {
      bool reads =
          isa<ir::LoadOp>(op) && isa<ir::LoadOp>(one.group->accesses.front());
      if (one.group == own || one.array != access.getArray() || reads)
        return false;
      bool isBeside = own && one.indices == access.getIndices().drop_back(
                                                own->extents.size());
      if (!isBeside)
        return true;
      if (!goesUp(one.group->accesses.front()))
        return one.group->has(component);
      one.touched.push_back(component);
      return false;
    });
  }

  /// None goes down past a load that other ones are to come up to.
  void closeStores(Value array) {
    llvm::erase_if(open, [&](Open &one) {
      return one.array == array && !goesUp(one.group->accesses.front());
    });
  }

  InterleavedAccesses &found;
  const Shapes &shapes;
  llvm::DenseMap<Value, Extents> extents;
  SmallVector<Open> open;
};

namespace {

/// What a row does with the components of one element.
struct Element {
  Value array;
  ValueRange indices; ///< but for those of components
  unsigned count;
  llvm::SmallBitVector used;
  bool isWritten = false;
  /// Pieces wait for what was stored to a part of them.
  bool isReloaded = false;

  explicit Element(const Interleaved &group)
      : array(arrayOf(group)), indices(indicesOf(group)), count(group.count),
        used(group.count) {}

  bool isOf(const Interleaved &group) const {
    return array == arrayOf(group) && indices == indicesOf(group);
  }

  void add(const Interleaved &group) {
    bool isLoad = isa<ir::LoadOp>(group.accesses.front());
    isReloaded |= isLoad && isWritten;
    isWritten |= !isLoad;
    for (unsigned component : group.components)
      used.set(component);
  }

private:
  static Value arrayOf(const Interleaved &group) {
    return cast<ir::ElementAccess>(group.accesses.front()).getArray();
  }
  static ValueRange indicesOf(const Interleaved &group) {
    return cast<ir::ElementAccess>(group.accesses.front())
        .getIndices()
        .drop_back(group.extents.size());
  }
};

} // namespace

bool InterleavedAccesses::defeatVectoriser() const {
  constexpr unsigned fewComponents = 3, mostOfVectoriser = 8;
  SmallVector<Element> elements;
  for (const Interleaved &group : all) {
    if (!group.isCertain)
      return false;
    auto isOfGroup = [&](const Element &one) { return one.isOf(group); };
    Element *known = llvm::find_if(elements, isOfGroup);
    if (known == elements.end())
      known = &elements.emplace_back(group);
    known->add(group);
  }
  auto isBetterThere = [](const Element &one) {
    return one.isReloaded || (one.used.all() && one.count > fewComponents &&
                              one.count <= mostOfVectoriser);
  };
  auto isGathered = [](const Element &one) {
    return !one.used.all() || one.count > mostOfVectoriser;
  };
  return llvm::none_of(elements, isBetterThere) &&
         llvm::any_of(elements, isGathered);
}

InterleavedAccesses::InterleavedAccesses(scf::ForOp row, const Shapes &shapes) {
  Finder(*this, row, shapes);
}

} // namespace costate::conversion
