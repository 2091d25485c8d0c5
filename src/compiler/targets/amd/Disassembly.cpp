#include "compiler/targets/amd/Disassembly.h"

#include "compiler/targets/amd/CodeObject.h"

#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace costate::compiler {
namespace {

using Elf = object::ELF64LEObjectFile;

Failure failure(llvm::Error error) {
  return {ErrorCode::Internal,
          "this is no code object: " + toString(std::move(error))};
}

Expected<Elf> open(const std::string &bytes) {
  return Elf::create(MemoryBufferRef(bytes, "code object"));
}

/// Kernels and what they call, in the order of their addresses.
Expected<std::vector<object::SymbolRef>> functionsOf(const Elf &file) {
  std::vector<object::SymbolRef> found;
  for (const object::ELFSymbolRef &symbol : file.symbols()) {
    Expected<object::SymbolRef::Type> type = symbol.getType();
    if (!type)
      return type.takeError();
    if (*type == object::SymbolRef::ST_Function)
      found.push_back(symbol);
  }
  llvm::sort(found, [](const object::SymbolRef &a, const object::SymbolRef &b) {
    return cantFail(a.getAddress()) < cantFail(b.getAddress());
  });
  return found;
}

class Printer {
public:
  Printer(const Elf &file, const TargetMachine &machine)
      : target(machine.getTarget()), triple(machine.getTargetTriple()),
        info(*machine.getMCSubtargetInfo()),
        context(triple, machine.getMCAsmInfo(), machine.getMCRegisterInfo(),
                &info),
        disassembler(target.createMCDisassembler(info, context)),
        printer(target.createMCInstPrinter(triple, 0, *machine.getMCAsmInfo(),
                                           *machine.getMCInstrInfo(),
                                           *machine.getMCRegisterInfo())) {}

  /// Code that is none is bytes.
  void print(ArrayRef<uint8_t> code, uint64_t address, raw_ostream &to) {
    for (uint64_t at = 0; at < code.size();) {
      MCInst instruction;
      uint64_t size = 0;
      auto status = disassembler->getInstruction(
          instruction, size, code.slice(at), address + at, nulls());
      if (status != MCDisassembler::Success) {
        size = std::min<uint64_t>(4, code.size() - at);
        for (uint8_t byte : code.slice(at, size))
          to << "\t.byte " << unsigned(byte) << "\n";
      } else {
        printer->printInst(&instruction, address + at, "", info, to);
        to << "\n";
      }
      at += size;
    }
  }

private:
  const llvm::Target &target;
  Triple triple;
  const MCSubtargetInfo &info;
  MCContext context;
  std::unique_ptr<MCDisassembler> disassembler;
  std::unique_ptr<MCInstPrinter> printer;
};

Expected<ArrayRef<uint8_t>> codeOf(const object::ELFSymbolRef &symbol) {
  Expected<object::section_iterator> section = symbol.getSection();
  if (!section)
    return section.takeError();
  Expected<StringRef> bytes = (*section)->getContents();
  if (!bytes)
    return bytes.takeError();
  uint64_t start = cantFail(symbol.getAddress()) - (*section)->getAddress();
  return arrayRefFromStringRef(bytes->substr(start, symbol.getSize()));
}

Expected<std::string> printed(const Elf &file, const TargetMachine &machine) {
  std::string text;
  raw_string_ostream stream(text);
  Printer printer(file, machine);
  auto functions = functionsOf(file);
  if (!functions)
    return functions.takeError();
  for (const object::SymbolRef &symbol : *functions) {
    Expected<StringRef> name = symbol.getName();
    Expected<ArrayRef<uint8_t>> code = codeOf(symbol);
    if (!name)
      return name.takeError();
    if (!code)
      return code.takeError();
    stream << '"' << *name << "\":\n";
    printer.print(*code, cantFail(symbol.getAddress()), stream);
  }
  return text;
}

/// The description for HSA, as MessagePack.
Expected<std::string> noteOf(const Elf &file) {
  auto sections = file.getELFFile().sections();
  if (!sections)
    return sections.takeError();
  for (const auto &section : *sections) {
    if (section.sh_type != ELF::SHT_NOTE)
      continue;
    llvm::Error error = llvm::Error::success();
    for (const auto &note : file.getELFFile().notes(section, error))
      if (note.getType() == ELF::NT_AMDGPU_METADATA)
        return note.getDescAsStringRef(4).str();
    if (error)
      return std::move(error);
  }
  return createStringError("it has no description");
}

KernelFacts factsOf(msgpack::MapDocNode kernel) {
  KernelFacts facts;
  facts.name = kernel[".name"].getString().str();
  auto number = [&](StringRef name) { return kernel[name].getUInt(); };
  facts.vgprs = number(".vgpr_count");
  facts.sgprs = number(".sgpr_count");
  facts.spilledVgprs = number(".vgpr_spill_count");
  facts.spilledSgprs = number(".sgpr_spill_count");
  facts.privateBytes = number(".private_segment_fixed_size");
  facts.sharedBytes = number(".group_segment_fixed_size");
  facts.lanes = number(".wavefront_size");
  facts.largestBlock = number(".max_flat_workgroup_size");
  for (msgpack::DocNode argument : kernel[".args"].getArray())
    if (argument.getMap()[".value_kind"].getString() == "by_value")
      facts.argumentBytes += argument.getMap()[".size"].getUInt();
  return facts;
}

} // namespace

Result<std::string> disassemble(const std::string &codeObject) {
  Expected<Elf> file = open(codeObject);
  if (!file)
    return failure(file.takeError());
  std::optional<StringRef> chip = file->tryGetCPUName();
  auto machine = amdMachine(chip ? chip->str() : "");
  if (!machine)
    return machine.error();
  static const bool isInitialised = [] {
    LLVMInitializeAMDGPUDisassembler();
    return true;
  }();
  (void)isInitialised;
  Expected<std::string> text = printed(*file, **machine);
  if (!text)
    return failure(text.takeError());
  return *text;
}

Result<std::vector<KernelFacts>> factsOf(const std::string &codeObject) {
  Expected<Elf> file = open(codeObject);
  if (!file)
    return failure(file.takeError());
  Expected<std::string> note = noteOf(*file);
  if (!note)
    return failure(note.takeError());
  msgpack::Document document;
  if (!document.readFromBlob(*note, false))
    return Failure{ErrorCode::Internal, "a code object describes nothing"};
  std::vector<KernelFacts> all;
  for (msgpack::DocNode kernel :
       document.getRoot().getMap()["amdhsa.kernels"].getArray())
    all.push_back(factsOf(kernel.getMap()));
  return all;
}

} // namespace costate::compiler
