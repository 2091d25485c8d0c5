#include "conversion/PlaceTapes/Locals.h"

#include "conversion/KernelToLLVM/Outline.h"

using namespace mlir;

namespace costate::conversion {

/// Of all private arrays of a work item, of which each copy of its code has its
/// own.
static constexpr int64_t mostLocalBytes = 4096;

static bool changesInCondition(Operation *loop) {
  auto open = dyn_cast<scf::WhileOp>(loop);
  return open && contains(open.getBefore(), ir::writesLocal);
}

StringRef obstacleOfLocals(ir::RangeOp range, const TapeShape &shape,
                           const sizing::Costs &costs) {
  int64_t bytes = 0;
  range.walk([&](ir::LocalOp local) {
    ir::LocalType type = local.getType();
    bytes += type.getSize() * type.getValueType().getIntOrFloatBitWidth() / 8;
  });
  if (bytes > mostLocalBytes)
    return "its private arrays are large";
  for (Operation *loop : shape.forwardLoops()) {
    if (LoopState(shape, loop).localRows() > costs.tiles().localRows)
      return "its private arrays are large";
    if (changesInCondition(loop))
      return "the condition of a `while` stores to a private array";
  }
  return {};
}

static int64_t sizeOf(Value local) {
  return cast<ir::LocalType>(local.getType()).getSize();
}

Values elementsOf(RowBuilder &b, ValueRange locals) {
  Values elements;
  for (Value local : locals) {
    Type type = cast<ir::LocalType>(local.getType()).getValueType();
    for (int64_t k = 0; k < sizeOf(local); ++k) {
      Value index = b.i64(k);
      elements.push_back(ir::LocalLoadOp::create(b, type, local, index));
    }
  }
  return elements;
}

void setElements(RowBuilder &b, ValueRange locals, ValueRange elements) {
  for (Value local : locals) {
    for (int64_t k = 0; k < sizeOf(local); ++k) {
      Value index = b.i64(k);
      ir::LocalStoreOp::create(b, elements[k], local, index);
    }
    elements = elements.drop_front(sizeOf(local));
  }
}

bool countingChangesLocals(const TapeShape &shape, const LoopState &loop) {
  bool runs = !loop.isSized() || !shape.level(loop.op()).isLeaf();
  return runs && !loop.locals().empty();
}

} // namespace costate::conversion
