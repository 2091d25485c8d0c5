/// Accesses of all lanes to components that stand side by side.

#include "conversion/Lanes/LaneBody.h"

#include "conversion/KernelToLLVM/Patterns.h"
#include "conversion/KernelToLLVM/Runtime.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace costate::conversion {

static Type elementOf(const Interleaved &group) {
  auto access = cast<ir::ElementAccess>(group.accesses.front());
  return memoryType(
      cast<ir::ArrayType>(access.getArray().getType()).getElementType());
}

namespace {

/// What the lanes have of an array, as vectors: component c of lane l is number
/// l * count + c of all.
class Pieces {
public:
  /// From `first` on.
  Pieces(LaneBuilder &b, const Interleaved &group, Value first, Value active)
      : b(b), group(group), first(first), active(active),
        type(b.vectorOf(elementOf(group))),
        alignment(type.getElementTypeBitWidth() / 8) {}

  /// Of active lanes.
  Values load() {
    Values pieces;
    for (unsigned piece = 0; piece < group.count; ++piece)
      pieces.push_back(
          active ? loadMasked(piece)
                 : LLVM::LoadOp::create(b, type, placeOf(piece), alignment)
                       .getResult());
    return pieces;
  }

  /// The components of the group only.
  void store(ValueRange pieces) {
    bool isAll = !active && group.components.size() == group.count;
    for (auto [piece, value] : llvm::enumerate(pieces)) {
      SmallVector<unsigned> own = ownOf(piece);
      if (isAll)
        LLVM::StoreOp::create(b, value, placeOf(piece), alignment);
      else if (!active && own.size() == 1)
        storeOne(piece, own.front(), value);
      else if (!own.empty())
        LLVM::MaskedStoreOp::create(b, value, placeOf(piece), writtenOf(piece),
                                    alignment);
    }
  }

  /// A component of each lane.
  Value component(ValueRange pieces, unsigned number) {
    return merged(pieces, [&](unsigned lane) {
      unsigned place = lane * group.count + number;
      return std::pair(place / b.lanes, place % b.lanes);
    });
  }

  /// Of a vector for each component, which may be poison outside of the group.
  Values join(ValueRange components) {
    Values pieces;
    for (unsigned piece = 0; piece < group.count; ++piece)
      pieces.push_back(merged(components, [&](unsigned k) {
        unsigned place = piece * b.lanes + k;
        return std::pair(place % group.count, place / group.count);
      }));
    return pieces;
  }

private:
  Value loadMasked(unsigned piece) {
    return LLVM::MaskedLoadOp::create(b, type, placeOf(piece), lanesOf(piece),
                                      b.zero(type), alignment);
  }

  /// LLVM 22 stores the wide number of a truncation, if a constant mask has the
  /// first element alone.
  void storeOne(unsigned piece, unsigned element, Value value) {
    value = LLVM::ExtractElementOp::create(b, value,
                                           b.number(b.getI64Type(), element));
    LLVM::StoreOp::create(b, value, placeOf(piece, element), alignment);
  }

  Value placeOf(unsigned piece, unsigned element = 0) {
    Value number = b.number(b.getI64Type(), int64_t(piece) * b.lanes + element);
    return LLVM::GEPOp::create(b, first.getType(), type.getElementType(), first,
                               ValueRange(number));
  }

  /// Element k is one of those of `vectors`: `source` says of which, and its
  /// number there.
  template <class Source> Value merged(ValueRange vectors, Source source) {
    Value all = vectors.front();
    for (unsigned next = 1; next < vectors.size(); ++next) {
      SmallVector<int32_t> wanted;
      for (unsigned k = 0; k < b.lanes; ++k) {
        auto [vector, element] = source(k);
        unsigned before = next == 1 ? element : k;
        wanted.push_back(vector > next   ? -1
                         : vector < next ? int32_t(before)
                                         : int32_t(b.lanes + element));
      }
      all = LLVM::ShuffleVectorOp::create(b, all, vectors[next], wanted);
    }
    return all;
  }

  /// The elements of active lanes.
  Value lanesOf(unsigned piece) {
    SmallVector<int32_t> lanes;
    for (unsigned k = 0; k < b.lanes; ++k)
      lanes.push_back(int32_t((piece * b.lanes + k) / group.count));
    return LLVM::ShuffleVectorOp::create(b, active, active, lanes);
  }

  /// The elements of a piece that are of the group.
  SmallVector<unsigned> ownOf(unsigned piece) {
    SmallVector<unsigned> own;
    for (unsigned k = 0; k < b.lanes; ++k)
      if (group.has((piece * b.lanes + k) % group.count))
        own.push_back(k);
    return own;
  }

  /// Those of active lanes.
  Value writtenOf(unsigned piece) {
    SmallVector<bool> bits(b.lanes, false);
    for (unsigned k : ownOf(piece))
      bits[k] = true;
    Value own = arith::ConstantOp::create(
        b, DenseElementsAttr::get(b.vectorOf(b.getI1Type()), bits));
    return active ? b.both(lanesOf(piece), own) : own;
  }

  LaneBuilder &b;
  const Interleaved &group;
  Value first, active;
  VectorType type;
  unsigned alignment;
};

/// Whether `array` has as many components as its indices let expect.
Value hasComponents(LaneBuilder &b, const ArrayView &array,
                    ArrayRef<int64_t> expected) {
  Value all;
  for (auto [extent, number] :
       llvm::zip_equal(array.extents.take_back(expected.size()), expected)) {
    Value same = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, extent,
                                       b.number(extent.getType(), number));
    all = all ? arith::AndIOp::create(b, all, same).getResult() : same;
  }
  return all;
}

} // namespace

/// If the array has other components, each access by itself.
void LaneBody::emitInterleaved(const Interleaved &group) {
  if (group.isCertain) {
    for (auto [access, value] : llvm::zip(group.accesses, emitTogether(group)))
      vectors[access->getResult(0)] = value;
    return;
  }
  ArrayView array(cast<ir::ElementAccess>(group.accesses.front()).getArray());
  SmallVector<Type> types;
  for (Operation *access : group.accesses)
    for (Type type : access->getResultTypes())
      types.push_back(b.vectorOf(type));
  auto branch =
      scf::IfOp::create(b, types, hasComponents(b, array, group.extents),
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Values together = emitTogether(group);
  if (!types.empty())
    scf::YieldOp::create(b, together);
  b.setInsertionPointToStart(branch.elseBlock());
  llvm::SaveAndRestore<bool> rare(isRare, true);
  for (Operation *access : group.accesses)
    emitAccess(access);
  if (types.empty())
    return;
  Values apart;
  for (auto [access, result] :
       llvm::zip_equal(group.accesses, branch.getResults())) {
    Value &known = vectors[access->getResult(0)];
    apart.push_back(std::exchange(known, result));
  }
  scf::YieldOp::create(b, apart);
}

/// Where component 0 of the first lane is.
Value LaneBody::firstPlace(const Interleaved &group) {
  auto access = cast<ir::ElementAccess>(group.accesses.front());
  ArrayView array(access.getArray());
  size_t inner = group.extents.size();
  Value number = linear(access.getIndices().drop_back(inner),
                        array.extents.drop_back(inner), /*ofAllLanes=*/false);
  number =
      arith::MulIOp::create(b, number, b.number(b.getI64Type(), group.count));
  return LLVM::GEPOp::create(b, array.base.getType(), elementOf(group),
                             array.base, ValueRange(number));
}

Values LaneBody::emitTogether(const Interleaved &group) {
  Operation *op = group.accesses.front();
  Type type = b.vectorOf(elementOf(group));
  Pieces pieces(b, group, firstPlace(group), active);
  if (isa<ir::StoreOp, ir::AtomicAddOp>(op)) {
    bool isAdd = isa<ir::AtomicAddOp>(op);
    Values own(group.count, LLVM::PoisonOp::create(b, type));
    for (auto [access, component] :
         llvm::zip_equal(group.accesses, group.components))
      own[component] = isAdd ? addend(access) : vector(access->getOperand(0));
    Values joined = pieces.join(own);
    if (isAdd)
      for (auto [value, old] : llvm::zip_equal(joined, pieces.load()))
        value = added(old, value);
    pieces.store(joined);
    return {};
  }
  Values loaded = pieces.load(), results;
  for (unsigned component : group.components)
    results.push_back(pieces.component(loaded, component));
  if (isa<ir::AtomicTakeOp>(op))
    pieces.store(Values(group.count, b.zero(type)));
  return results;
}

} // namespace costate::conversion
