#include "compiler/Costs.h"

#include "compiler/Facts.h"
#include "ir/LoopPairs.h"
#include "ir/Source.h"
#include "sizing/Narrow.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <map>

using namespace mlir;

namespace costate::compiler {
namespace {

bool steersBranch(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    return isa<scf::IfOp>(use.getOwner());
  });
}

bool countsIterations(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    auto loop = dyn_cast<scf::ForOp>(use.getOwner());
    return loop && &loop.getUpperBoundMutable() == &use;
  });
}

class LineCosts {
public:
  void addRecord(tape::PushOp push, tape::PopOp pop) {
    for (auto [k, value] : llvm::enumerate(push.getValues())) {
      runtime::LineCost *line = lineOf(placeOf(value));
      if (!line)
        continue;
      line->savedBits += sizing::storedType(value).getIntOrFloatBitWidth();
      line->condition |= pop && steersBranch(pop.getValues()[k]);
      line->tripCount |= pop && countsIterations(pop.getValues()[k]);
      noteLoop(*line, push);
    }
  }

  void addOperation(Operation *op) {
    if (!ir::isRecomputed(op->getLoc()) || matchPattern(op, m_Constant()))
      return;
    if (runtime::LineCost *line = lineOf(op->getLoc()))
      ++(isa<ir::LoadOp>(op) ? line->loaded : line->computed);
  }

  /// A loop over segments: what a state takes.
  void addLoop(Operation *loop) {
    runtime::LineCost *line = lineOf(loop->getLoc());
    int64_t state = bytesOf(loop);
    if (!line)
      return;
    line->runsAgain = true;
    line->stateBytes = std::max(line->stateBytes, state);
    line->checkpoints = std::max(line->checkpoints, checkpointsOf(loop));
  }

  /// One that tiles run again, and that is not cut before.
  void addOfTiles(Operation *loop) {
    runtime::LineCost *line = lineOf(loop->getLoc());
    if (!line)
      return;
    int64_t bits = 0;
    for (Value value : carriedBy(loop))
      bits += value.getType().getIntOrFloatBitWidth();
    line->runsAgain = line->runsInTiles = true;
    line->checkpoints = std::max(line->checkpoints, checkpointsOf(loop));
    line->stateBytes = std::max(line->stateBytes, (bits + 7) / 8);
    line->iterationBytes = std::max(line->iterationBytes, bytesOf(loop));
  }

  /// One that was to run again, and does not.
  void addWhole(Operation *loop) {
    if (runtime::LineCost *line = lineOf(loop->getLoc()))
      line->staysWhole = true;
  }

  /// One that is no part of a loop which runs again.
  void addKept(Operation *loop) {
    int64_t bytes = bytesOf(loop);
    runtime::LineCost *line = bytes ? lineOf(loop->getLoc()) : nullptr;
    if (!line)
      return;
    line->keepsAll = true;
    line->iterationBytes = std::max(line->iterationBytes, bytes);
  }

  /// One that saves what its iterations take.
  void addIterations(Operation *loop) {
    if (runtime::LineCost *line = lineOf(loop->getLoc()))
      line->iterationBytes = std::max(line->iterationBytes, bytesOf(loop));
  }

  std::vector<runtime::LineCost> take() {
    std::vector<runtime::LineCost> all;
    for (auto &[place, line] : lines)
      all.push_back(std::move(line));
    return all;
  }

private:
  static void noteLoop(runtime::LineCost &line, Operation *push) {
    Operation *loop = push->getParentOp();
    while (loop && !isa<scf::ForOp, scf::WhileOp, ir::RangeOp>(loop))
      loop = loop->getParentOp();
    FileLineColLoc place = loop && !isa<ir::RangeOp>(loop)
                               ? ir::sourceOf(loop->getLoc())
                               : FileLineColLoc();
    if (!place || place.getFilename().str() != line.file ||
        place.getLine() > line.line)
      return;
    int64_t above = line.line - place.getLine();
    line.loopAbove =
        line.loopAbove < 0 ? above : std::min(line.loopAbove, above);
  }

  /// 0: it does not say.
  static int64_t checkpointsOf(Operation *loop) {
    auto most = loop->getAttrOfType<IntegerAttr>(ir::checkpointsAttr);
    return most ? most.getInt() : 0;
  }

  static ValueRange carriedBy(Operation *loop) {
    if (auto counted = dyn_cast<scf::ForOp>(loop))
      return counted.getInitArgs();
    return cast<scf::WhileOp>(loop).getInits();
  }

  /// Of the records of one iteration, without those of loops in it that save
  /// more often; private arrays are saved by loops of a known length.
  static int64_t bytesOf(Operation *loop) {
    int64_t bytes = 0;
    loop->walk([&](tape::PushOp push) {
      int64_t times = 1;
      for (Operation *op = push->getParentOp(); op != loop && times;
           op = op->getParentOp())
        if (isa<LoopLikeOpInterface>(op))
          times = op->hasAttr(ir::segmentAttr)
                      ? 0
                      : times * tape::constantCount(op).value_or(0);
      bytes += times * recordBytes(push);
    });
    return bytes;
  }

  /// What a loop carries has the place of the loop.
  static Location placeOf(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && !ir::sourceOf(argument.getLoc()))
      return argument.getOwner()->getParentOp()->getLoc();
    return value.getLoc();
  }

  /// Null if the place is not known.
  runtime::LineCost *lineOf(Location loc) {
    FileLineColLoc place = ir::sourceOf(loc);
    if (!place)
      return nullptr;
    std::string file = place.getFilename().str();
    runtime::LineCost &line = lines[{file, place.getLine()}];
    line.file = file;
    line.line = place.getLine();
    return &line;
  }

  std::map<std::pair<std::string, unsigned>, runtime::LineCost> lines;
};

} // namespace

std::vector<runtime::LineCost> lineCosts(ir::KernelOp gradient) {
  llvm::DenseMap<int64_t, tape::PopOp> pops;
  gradient.walk([&](tape::PopOp pop) {
    if (std::optional<int64_t> record = pop.getRecord())
      pops[*record] = pop;
  });
  LineCosts costs;
  gradient.walk([&](Operation *op) {
    costs.addOperation(op);
    if (op->hasAttr(ir::rerunAttr))
      costs.addLoop(op);
    else if (op->hasAttr(ir::wholeAttr))
      costs.addWhole(op);
    else if (op->hasAttr(ir::checkpointsAttr))
      costs.addOfTiles(op);
    else if (op->hasAttr(ir::restAttr) || op->hasAttr(ir::segmentAttr))
      costs.addIterations(op);
    else if (isa<scf::ForOp, scf::WhileOp>(op))
      costs.addKept(op);
    if (auto push = dyn_cast<tape::PushOp>(op))
      costs.addRecord(push, push.getRecord() ? pops.lookup(*push.getRecord())
                                             : tape::PopOp());
  });
  return costs.take();
}

} // namespace costate::compiler
