#include "conversion/FindNan/Passes.h"
#include "conversion/FindNan/Wording.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_NAMEOPERATIONS
#include "conversion/FindNan/Passes.h.inc"

namespace {

struct NameOperations : impl::NameOperationsBase<NameOperations> {
  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      std::optional<Wording> wording = wordingOf(op);
      if (!wording || !userNameOf(op->getLoc()).empty())
        return;
      auto name = StringAttr::get(&getContext(), wording->name);
      op->setLoc(NameLoc::get(name, op->getLoc()));
      op->setAttr(ownAttr, UnitAttr::get(&getContext()));
    });
  }
};

} // namespace
} // namespace costate::conversion
