#include "conversion/PlaceTapes/Checkpoints.h"

#include "conversion/PlaceTapes/Locals.h"

using namespace mlir;

namespace costate::conversion {

Value rowsOfCheckpoints(RowBuilder &b, const LoopState &state, Value iterations,
                        Value unit, Value rows, Value few) {
  int64_t checkpoints = state.checkpoints();
  if (!checkpoints)
    return rows;
  Value padded = arith::AddIOp::create(b, iterations, b.i64(checkpoints - 1));
  Value length = arith::DivUIOp::create(b, padded, b.i64(checkpoints));
  Value wanted = arith::MulIOp::create(b, length, unit);
  Value states = b.i64(checkpoints * state.checkpointRows());
  wanted = b.most(arith::AddIOp::create(b, wanted, states), few);
  return b.least(rows, wanted);
}

void writeCheckpoint(RowBuilder &b, const OpenLoop &loop, Value at,
                     ValueRange state) {
  Values saved;
  for (unsigned k = 0; k < state.size(); ++k)
    if (loop.state.isInCheckpoint(k))
      saved.push_back(state[k]);
  if (saved.empty() && loop.locals.empty())
    return;
  b.branch(loop.fit, {}, [&] {
    saved.append(elementsOf(b, loop.locals));
    tape::WriteOp::create(b, saved, at);
    return Values();
  });
}

Values stateOf(RowBuilder &b, const OpenLoop &loop, ValueRange saved,
               Value iteration) {
  Values state;
  unsigned next = 0;
  for (auto [k, init] : llvm::enumerate(loop.inits)) {
    if (loop.state.isInCheckpoint(k)) {
      state.push_back(saved[next++]);
    } else if (auto gain = loop.state.gain(k)) {
      Value number = b.index(iteration);
      Value sum = arith::MulIOp::create(b, number, b.i64(*gain));
      state.push_back(arith::AddIOp::create(b, init, sum));
    } else {
      state.push_back(init);
    }
  }
  return state;
}

Values readCheckpoint(RowBuilder &b, const OpenLoop &loop, Value at,
                      Value iteration) {
  SmallVector<Type> types = loop.state.checkpoint();
  Values saved;
  if (!types.empty())
    saved = Values(tape::ReadOp::create(b, types, at).getResults());
  size_t values = loop.state.checkpointValues();
  setElements(b, loop.locals, ValueRange(saved).drop_front(values));
  return stateOf(b, loop, ValueRange(saved).take_front(values), iteration);
}

} // namespace costate::conversion
