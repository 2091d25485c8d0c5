#include "conversion/Lanes/Nearby.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <map>

using namespace mlir;

namespace costate::conversion {

NearbyLoads::NearbyLoads(scf::ForOp row, const Shapes &shapes)
    : shapes(shapes) {
  using Key = SmallVector<const void *>;
  std::map<Key, SmallVector<ir::LoadOp>> found;
  row.getBody()->walk([&](ir::LoadOp load) {
    ValueRange indices = load.getIndices();
    if (shapes.areShared(indices) || shapes.areNeighbours(indices))
      return;
    Key key;
    if (indices.size() > 1) // extents count
      key.push_back(load.getArray().getAsOpaquePointer());
    for (const SplitIndex &index : indicesOf(load))
      key.push_back(index.varying.getAsOpaquePointer());
    found[key].push_back(load);
  });
  unsigned number = 0;
  for (auto &[key, loads] : found) {
    if (loads.size() > 1)
      for (ir::LoadOp load : loads)
        groups[load] = number;
    ++number;
  }
}

const unsigned *NearbyLoads::groupOf(Operation *op) const {
  auto known = groups.find(op);
  return known == groups.end() ? nullptr : &known->second;
}

SmallVector<SplitIndex> NearbyLoads::indicesOf(ir::LoadOp load) const {
  return llvm::map_to_vector(load.getIndices(),
                             [&](Value index) { return split(index); });
}

SplitIndex NearbyLoads::split(Value index) const {
  if (shapes.isUniform(index))
    return {nullptr, {index}};
  auto add = index.getDefiningOp<arith::AddIOp>();
  if (!add)
    return {index, {}};
  for (auto [one, other] : {std::pair(add.getLhs(), add.getRhs()),
                            std::pair(add.getRhs(), add.getLhs())})
    if (shapes.isUniform(other)) {
      SplitIndex rest = split(one);
      rest.shared.push_back(other);
      return rest;
    }
  return {index, {}};
}

} // namespace costate::conversion
