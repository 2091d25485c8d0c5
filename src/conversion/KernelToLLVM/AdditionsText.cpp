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

std::string additionsText(ir::RangeOp range) {
  std::set<unsigned> atomic, slabs, copies;
  range.getBodyRegion().walk([&](ir::AtomicAddOp add) {
    auto place = add.getLoc()->findInstanceOf<FileLineColLoc>();
    if (add.getExclusive() || !place)
      return;
    bool isOfSlab = add->hasAttr(slabAttr), isCopied = add->hasAttr(copyAttr);
    (isOfSlab ? slabs : isCopied ? copies : atomic).insert(place.getLine());
  });
  std::string text;
  auto append = [&](const char *how, const std::set<unsigned> &lines) {
    if (lines.empty())
      return;
    text += (text.empty() ? "additions: " : ", ") + std::string(how) + " (" +
            linesText(lines) + ")";
  };
  append("by slabs", slabs);
  append("to copies if the array is small", copies);
  append("atomic", atomic);
  return text;
}

} // namespace costate::conversion
