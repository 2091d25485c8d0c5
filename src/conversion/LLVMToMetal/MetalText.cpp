#include "conversion/LLVMToMetal/MetalText.h"

#include "base/MetalChip.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace costate::conversion {

static constexpr char prelude[] = {
#include "conversion/Prelude.inc"
    0};
static constexpr char tableFunctions[] = {
#include "conversion/Tables.inc"
    0};
static constexpr char doubles[] = {
#include "conversion/Float64.inc"
    0};

uint64_t MetalText::placeTable(StringRef name, StringRef bytes) {
  constexpr size_t alignment = 8, readAfter = 8;
  auto [place, isNew] = tableStarts.try_emplace(name, tableContents.size());
  if (isNew) {
    tableContents += bytes;
    tableContents.resize(alignTo(tableContents.size() + readAfter, alignment));
  }
  return place->second;
}

void MetalText::addFunction(const std::string &head, const std::string &body) {
  heads += head + ";\n";
  bodies += "\n" + head + " {\n" + body + "}\n";
}

void MetalText::addKernel(const std::string &name, const std::string &body) {
  bodies += "\nkernel void " + name + "(COSTATE_PARAMETERS) {\n" + body + "}\n";
}

std::string MetalText::tables() const {
  if (tableContents.empty())
    return "";
  constexpr size_t wordBytes = 4, inLine = 6;
  std::string text = "constant uint costate_tables[] = {";
  for (size_t at = 0; at < tableContents.size(); at += wordBytes) {
    text += at % (inLine * wordBytes) ? " " : "\n    ";
    text += "0x" +
            utohexstr(support::endian::read32le(tableContents.data() + at),
                      /*LowerCase=*/true) +
            "u,";
  }
  return text + "};\n" + tableFunctions;
}

std::string MetalText::finish(uint64_t blockBytes) const {
  std::string mark =
      std::string(metalBlockBytesMark) + utostr(blockBytes) + "\n";
  return mark + prelude + "\n" + tables() + "\n" +
         (hasDoubles ? doubles + std::string("\n") : "") + heads + bodies;
}

} // namespace costate::conversion
