#include "fuzz/Coverage.h"

#include "autodiff/activity/Activity.h"
#include "autodiff/rules/Rules.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstdio>

using namespace mlir;

namespace costate::fuzz {

static constexpr const char *constructNames[] = {
    "serial", "range", "if", "for", "before", "while", "nest"};

/// The innermost construct around `op`; a loop in a loop is a nest.
static Construct constructOf(Operation *op) {
  Construct found = Construct::Serial;
  int loops = 0;
  for (Operation *at = op->getParentOp(); !isa<ir::KernelOp>(at);
       op = at, at = at->getParentOp()) {
    bool isBefore =
        isa<scf::WhileOp>(at) && op->getParentRegion()->getRegionNumber() == 0;
    loops += isa<scf::ForOp, scf::WhileOp>(at);
    if (found != Construct::Serial)
      continue;
    found = isa<scf::IfOp>(at)      ? Construct::Branch
            : isa<scf::ForOp>(at)   ? Construct::For
            : isBefore              ? Construct::WhileBefore
            : isa<scf::WhileOp>(at) ? Construct::WhileBody
                                    : Construct::Range;
  }
  return loops > 1 ? Construct::Nest : found;
}

std::vector<std::string> differentiableOperations() {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<arith::ArithDialect, math::MathDialect,
                      ir::CostateDialect>();
  std::vector<std::string> names;
  Location loc = UnknownLoc::get(&context);
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    Operation *op = Operation::create(OperationState(loc, name));
    if (autodiff::findRule(op))
      names.push_back(name.getStringRef().str());
    op->destroy();
  }
  return names;
}

void Coverage::add(const Case &subject, const Verdict &verdict) {
  if (verdict.kind != Verdict::Right && verdict.kind != Verdict::Refused)
    return;
  ir::KernelOp kernel = subject.kernel;
  autodiff::Activity activity(kernel, [](Value) { return true; });
  kernel.walk([&](Operation *op) {
    auto isFloat = [](Value v) { return isa<FloatType>(v.getType()); };
    auto isVaried = [&](Value v) { return activity.isVaried(v); };
    if (op == kernel)
      return;
    if (llvm::any_of(op->getOperands(), isFloat) &&
        llvm::none_of(op->getOperands(), isVaried))
      return;
    auto &cell =
        cells[op->getName().getStringRef().str()][size_t(constructOf(op))];
    ++cell[size_t(DerivativeMode::Forward)];
    if (verdict.kind == Verdict::Right)
      ++cell[size_t(DerivativeMode::Reverse)];
  });
}

std::string Coverage::table() const {
  char line[160];
  std::string text = "operation             ";
  for (const char *name : constructNames) {
    std::snprintf(line, sizeof(line), " %12s", name);
    text += line;
  }
  text += "    (forward/reverse)\n";
  for (const std::string &name : differentiableOperations()) {
    std::snprintf(line, sizeof(line), "%-22s", name.c_str());
    text += line;
    auto place = cells.find(name);
    for (size_t c = 0; c < size_t(Construct::count); ++c) {
      auto cell = place == cells.end() ? Cells{}[c] : place->second[c];
      std::string both =
          std::to_string(cell[0]) + "/" + std::to_string(cell[1]);
      std::snprintf(line, sizeof(line), " %12s", both.c_str());
      text += line;
    }
    text += '\n';
  }
  return text;
}

std::vector<std::string> Coverage::missing() const {
  std::vector<std::string> empty;
  for (const std::string &name : differentiableOperations()) {
    auto place = cells.find(name);
    for (size_t c = 0; c < size_t(Construct::count); ++c)
      for (size_t mode : {0, 1})
        if (place == cells.end() || place->second[c][mode] == 0)
          empty.push_back(name + " in " + constructNames[c] +
                          (mode ? ", reverse" : ", forward"));
  }
  return empty;
}

} // namespace costate::fuzz
