#include "conversion/LLVMToSPIRV/Words.h"

#include "base/VulkanTables.h"
#include "conversion/LLVMToSPIRV/SpirvModule.h"

using namespace llvm;
namespace spv = mlir::spirv;

namespace costate::conversion {
namespace {

constexpr size_t headerWords = 5, boundWord = 3;

struct Instruction {
  spv::Opcode opcode;
  SmallVector<uint32_t, 6> operands;
};

using Instructions = SmallVector<Instruction>;

Instructions parse(ArrayRef<uint32_t> words) {
  Instructions all;
  for (size_t at = headerWords; at < words.size(); at += words[at] >> 16) {
    auto operands = words.slice(at + 1, (words[at] >> 16) - 1);
    all.push_back(
        {spv::Opcode(words[at] & 0xffff), {operands.begin(), operands.end()}});
  }
  return all;
}

void print(const Instructions &all, SmallVectorImpl<uint32_t> &words) {
  words.truncate(headerWords);
  for (const Instruction &one : all) {
    words.push_back(static_cast<uint32_t>(one.operands.size() + 1) << 16 |
                    static_cast<uint32_t>(one.opcode));
    words.append(one.operands.begin(), one.operands.end());
  }
}

/// The constant that is specialised by `number`.
uint32_t constantOf(const Instructions &all, uint32_t number) {
  for (const Instruction &one : all)
    if (one.opcode == spv::Opcode::OpDecorate && one.operands.size() == 3 &&
        one.operands[1] == uint32_t(spv::Decoration::SpecId) &&
        one.operands[2] == number)
      return one.operands[0];
  llvm_unreachable("every module has these constants");
}

template <class Holds> size_t indexOf(const Instructions &all, Holds holds) {
  return find_if(all, holds) - all.begin();
}

bool isType(const Instruction &one) {
  return one.opcode >= spv::Opcode::OpTypeVoid &&
         one.opcode <= spv::Opcode::OpTypeForwardPointer;
}

/// Takes the instruction at `from` to `to`, in front of it.
void moveUp(Instructions &all, size_t from, size_t to) {
  std::rotate(all.begin() + to, all.begin() + from, all.begin() + from + 1);
}

/// A string of SPIR-V: bytes, a zero after them.
void addString(Instruction &one, StringRef text) {
  for (size_t at = 0; at <= text.size(); at += 4) {
    uint32_t word = 0;
    for (size_t k = at; k < std::min(at + 4, text.size()); ++k)
      word |= uint32_t(static_cast<unsigned char>(text[k])) << 8 * (k - at);
    one.operands.push_back(word);
  }
}

/// Lets the code say what its tables hold (base/VulkanTables.h).
void addTables(Instructions &all, uint32_t &bound, StringRef bytes) {
  constexpr size_t mostBytes = 100000; // of an instruction
  size_t place = indexOf(all, [](const Instruction &one) {
    return one.opcode == spv::Opcode::OpExecutionMode;
  });
  while (place < all.size() &&
         all[place].opcode == spv::Opcode::OpExecutionMode)
    ++place;
  for (; !bytes.empty();
       bytes = bytes.drop_front(std::min(mostBytes, bytes.size()))) {
    Instruction one{spv::Opcode::OpString, {bound++}};
    addString(one, vulkanTablesText(bytes.take_front(mostBytes)));
    all.insert(all.begin() + place++, one);
  }
}

/// Asks for SPV_KHR_maximal_reconvergence in all entry points.
void reconverge(Instructions &all) {
  constexpr uint32_t maximallyReconverges = 6023; // not in the dialect
  Instructions modes;
  for (const Instruction &one : all)
    if (one.opcode == spv::Opcode::OpEntryPoint)
      modes.push_back({spv::Opcode::OpExecutionMode,
                       {one.operands[1], maximallyReconverges}});
  size_t mode = indexOf(all, [](const Instruction &one) {
    return one.opcode == spv::Opcode::OpExecutionMode;
  });
  all.insert(all.begin() + mode, modes.begin(), modes.end());
  size_t capability = indexOf(all, [](const Instruction &one) {
    return one.opcode != spv::Opcode::OpCapability;
  });
  Instruction extension{spv::Opcode::OpExtension, {}};
  addString(extension, "SPV_KHR_maximal_reconvergence");
  all.insert(all.begin() + capability, extension);
}

/// Lets the specialisation constants of SpirvModule.h decide the size of a
/// block and the length of its memory.
void specialise(Instructions &all, uint32_t &bound, uint64_t blockBytes) {
  uint32_t threads = constantOf(all, BlockThreadsConstant);
  uint32_t length = constantOf(all, BlockWordsConstant);
  auto defines = [](uint32_t id) {
    return [id](const Instruction &one) {
      return one.opcode == spv::Opcode::OpSpecConstant && one.operands[1] == id;
    };
  };
  size_t first = indexOf(all, isType);
  size_t number = indexOf(all, [](const Instruction &one) {
    return one.opcode == spv::Opcode::OpTypeInt && one.operands[1] == 32;
  });
  uint32_t numberType = all[number].operands[0];
  uint32_t own = bound++, lengthOfAll = bound++;
  moveUp(all, number, first);
  auto ownWords = static_cast<uint32_t>(std::max<uint64_t>(1, blockBytes / 4));
  all.insert(
      all.begin() + first + 1,
      {spv::Opcode::OpSpecConstantOp,
       {numberType, lengthOfAll, uint32_t(spv::Opcode::OpIAdd), own, length}});
  all.insert(all.begin() + first + 1,
             {spv::Opcode::OpConstant, {numberType, own, ownWords}});
  for (uint32_t id : {length, threads})
    moveUp(all, indexOf(all, defines(id)), first + 1);

  SmallVector<uint32_t> unknown;
  for (const Instruction &one : all)
    if (one.opcode == spv::Opcode::OpConstant && one.operands.size() == 3 &&
        one.operands[2] == unknownLength)
      unknown.push_back(one.operands[1]);
  for (Instruction &one : all)
    if (one.opcode == spv::Opcode::OpTypeArray &&
        is_contained(unknown, one.operands[2]))
      one.operands[2] = lengthOfAll;

  uint32_t vector = 0;
  for (const Instruction &one : all)
    if (one.opcode == spv::Opcode::OpTypeVector &&
        one.operands[1] == numberType && one.operands[2] == 3)
      vector = one.operands[0];
  uint32_t one = bound++, size = bound++;
  size_t code = indexOf(all, [](const Instruction &one) {
    return one.opcode == spv::Opcode::OpFunction;
  });
  all.insert(all.begin() + code, {spv::Opcode::OpSpecConstantComposite,
                                  {vector, size, threads, one, one}});
  all.insert(all.begin() + code,
             {spv::Opcode::OpConstant, {numberType, one, 1}});
  all.insert(all.begin() + first, {spv::Opcode::OpDecorate,
                                   {size, uint32_t(spv::Decoration::BuiltIn),
                                    uint32_t(spv::BuiltIn::WorkgroupSize)}});
}

} // namespace

void complete(SmallVectorImpl<uint32_t> &words, const Additions &additions) {
  Instructions all = parse(words);
  uint32_t &bound = words[boundWord];
  specialise(all, bound, additions.blockBytes);
  addTables(all, bound, additions.tables);
  if (additions.reconverges)
    reconverge(all);
  print(all, words);
}

} // namespace costate::conversion
