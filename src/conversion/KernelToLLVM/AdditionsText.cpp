#include "conversion/KernelToLLVM/AdditionsText.h"
#include "conversion/KernelToLLVM/Runtime.h"

#include <set>

using namespace mlir;

namespace costate::conversion {

static std::string linesText(const std::set<unsigned> &lines) {
  std::string text = lines.size() == 1 ? "line " : "lines ";
  for (unsigned line : lines)
    text += (line == *lines.begin() ? "" : ", ") + std::to_string(line);
  return text;
}

/// Of all places that `loc` stands for.
static void addLines(Location loc, std::set<unsigned> &lines) {
  if (auto several = dyn_cast<FusedLoc>(loc)) {
    for (Location one : several.getLocations())
      addLines(one, lines);
    return;
  }
  if (auto place = loc->findInstanceOf<FileLineColLoc>())
    lines.insert(place.getLine());
}

std::string additionsText(ir::RangeOp range) {
  std::set<unsigned> gathered, slabs, copies, atomic;
  range.getBodyRegion().walk([&](Operation *op) {
    auto add = dyn_cast<ir::AtomicAddOp>(op);
    if (range->hasAttr(ir::gatherAttr) && isa<ir::StoreOp>(op))
      addLines(op->getLoc(), gathered);
    else if (add && !add.getExclusive())
      addLines(op->getLoc(), op->hasAttr(slabAttr)   ? slabs
                             : op->hasAttr(copyAttr) ? copies
                                                     : atomic);
  });
  std::string text;
  auto append = [&](const char *how, const std::set<unsigned> &lines) {
    if (lines.empty())
      return;
    text += (text.empty() ? "additions: " : ", ") + std::string(how) + " (" +
            linesText(lines) + ")";
  };
  append("gathered", gathered);
  append("by slabs", slabs);
  append("to copies if the array is small", copies);
  append("atomic", atomic);
  return text;
}

} // namespace costate::conversion
