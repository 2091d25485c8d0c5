#include "compiler/targets/amd/AmdCode.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCAsmBackend.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCCodeEmitter.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCObjectFileInfo.h"
#include "llvm/MC/MCObjectWriter.h"
#include "llvm/MC/MCParser/MCAsmParser.h"
#include "llvm/MC/MCParser/MCTargetAsmParser.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace costate::compiler {
namespace {

using Elf = object::ELF64LEObjectFile;

/// Symbols that are functions, or whole sections of code.
std::string bytesOf(const Elf &file, bool ofSymbols) {
  std::map<uint64_t, std::string> parts;
  for (const object::SectionRef &section : file.sections()) {
    if (!section.isText())
      continue;
    StringRef bytes = cantFail(section.getContents());
    if (!ofSymbols)
      parts[parts.size()] = bytes.str();
    for (const object::ELFSymbolRef &symbol : file.symbols())
      if (ofSymbols && symbol.getELFType() == ELF::STT_FUNC) {
        uint64_t address = cantFail(symbol.getAddress());
        parts[address] =
            bytes.substr(address - section.getAddress(), symbol.getSize())
                .str();
      }
  }
  std::string all;
  for (const auto &[address, part] : parts)
    all += part;
  return all;
}

std::string bytesOf(const std::string &file, bool ofSymbols) {
  return bytesOf(cantFail(Elf::create(MemoryBufferRef(file, ""))), ofSymbols);
}

/// What LLVM needs to assemble for a machine.
class Assembler {
public:
  Assembler(const TargetMachine &machine, SourceMgr &source)
      : machine(machine), source(source),
        context(machine.getTargetTriple(), machine.getMCAsmInfo(),
                machine.getMCRegisterInfo(), &info(), &source) {
    files.initMCObjectFileInfo(context, /*PIC=*/true);
    context.setObjectFileInfo(&files);
  }

  /// Whether it is an object file now.
  bool run(raw_pwrite_stream &to) {
    std::unique_ptr<MCStreamer> streamer = open(to);
    streamer->initSections(/*NoExecStack=*/false, info());
    std::unique_ptr<MCAsmParser> parser(
        createMCAsmParser(source, context, *streamer, *machine.getMCAsmInfo()));
    std::unique_ptr<MCTargetAsmParser> instructions(target().createMCAsmParser(
        info(), *parser, *machine.getMCInstrInfo(), machine.Options.MCOptions));
    parser->setTargetParser(*instructions);
    return !parser->Run(/*NoInitialTextSection=*/false);
  }

private:
  const llvm::Target &target() const { return machine.getTarget(); }
  const MCSubtargetInfo &info() const { return *machine.getMCSubtargetInfo(); }

  std::unique_ptr<MCStreamer> open(raw_pwrite_stream &to) {
    std::unique_ptr<MCAsmBackend> backend(target().createMCAsmBackend(
        info(), *machine.getMCRegisterInfo(), machine.Options.MCOptions));
    std::unique_ptr<MCObjectWriter> writer = backend->createObjectWriter(to);
    std::unique_ptr<MCCodeEmitter> emitter(
        target().createMCCodeEmitter(*machine.getMCInstrInfo(), context));
    return std::unique_ptr<MCStreamer>(target().createMCObjectStreamer(
        machine.getTargetTriple(), context, std::move(backend),
        std::move(writer), std::move(emitter), info()));
  }

  const TargetMachine &machine;
  SourceMgr &source;
  MCContext context;
  MCObjectFileInfo files;
};

} // namespace

Result<std::string> emitForAmd(const std::string &ir, const std::string &chip) {
  LLVMContext context;
  SMDiagnostic error;
  std::unique_ptr<Module> module = parseAssemblyString(ir, error, context);
  if (!module)
    return Failure{ErrorCode::Internal, error.getMessage().str()};
  return emitCodeObject(*module, chip);
}

std::string instructionsOf(const std::string &codeObject) {
  return bytesOf(codeObject, /*ofSymbols=*/true);
}

Result<std::string> assembleForAmd(const std::string &text,
                                   const std::string &chip) {
  auto machine = amdMachine(chip);
  if (!machine)
    return machine.error();
  LLVMInitializeAMDGPUAsmParser();
  SourceMgr source;
  source.AddNewSourceBuffer(MemoryBuffer::getMemBuffer(text), SMLoc());
  std::string said;
  source.setDiagHandler(
      [](const SMDiagnostic &diagnostic, void *to) {
        raw_string_ostream stream(*static_cast<std::string *>(to));
        diagnostic.print("", stream, /*ShowColors=*/false);
      },
      &said);
  SmallString<0> object;
  raw_svector_ostream stream(object);
  if (!Assembler(**machine, source).run(stream))
    return Failure{ErrorCode::Internal, said};
  return bytesOf(object.str().str(), /*ofSymbols=*/false);
}

} // namespace costate::compiler
