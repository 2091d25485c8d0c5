#include "conversion/KernelToLLVM/MathLibrary.h"

#include "llvm/ADT/StringSwitch.h"

#include <numbers>

using namespace mlir;

namespace costate::conversion {

enum class Source { Sleef, Libm, Own };

struct MathLibrary::Entry {
  StringRef operation;
  StringRef name;
  unsigned operands;
  Source source;
};

const MathLibrary::Entry *MathLibrary::find(StringRef operation) {
  static constexpr Entry entries[] = {
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, library, ...)         \
  {"costate." #mnemonic, #name, operands, Source::library},
#include "costate/detail/operations.def"
      {"arith.remf", "fmod", 2, Source::Libm},
  };
  auto entry = llvm::find_if(entries, [&](const Entry &candidate) {
    return candidate.operation == operation && candidate.source != Source::Own;
  });
  return entry == std::end(entries) ? nullptr : entry;
}

std::optional<Maths> parseMaths(StringRef name) {
  return llvm::StringSwitch<std::optional<Maths>>(name)
      .Case("libm", Maths::Libm)
      .Case("libclc", Maths::Libclc)
      .Case("sse2", Maths::SSE2)
      .Case("neon", Maths::NEON)
      .Case("avx2", Maths::AVX2)
      .Case("avx512", Maths::AVX512)
      .Default(std::nullopt);
}

StringRef nameOf(Maths maths) {
  static constexpr StringLiteral names[] = {"libm", "libclc", "sse2",
                                            "neon", "avx2",   "avx512"};
  return names[static_cast<int>(maths)];
}

/// As CUDA's: `__expf` is a power of two, `__logf` a logarithm by two.
std::optional<Approximation> MathLibrary::approximation(StringRef operation,
                                                        Type type) const {
  if (!approximates || maths != Maths::Libclc || !type.isF32())
    return std::nullopt;
  using Found = std::optional<Approximation>;
  constexpr StringLiteral power = "llvm.nvvm.ex2.approx",
                          logarithm = "llvm.nvvm.lg2.approx.f";
  return llvm::StringSwitch<Found>(operation)
      .Case("costate.sin", Found({"llvm.nvvm.sin.approx.f"}))
      .Case("costate.cos", Found({"llvm.nvvm.cos.approx.f"}))
      .Case("costate.exp", Found({power, std::numbers::log2e}))
      .Case("costate.exp2", Found({power}))
      .Case("costate.log", Found({logarithm, 1, std::numbers::ln2}))
      .Case("costate.log2", Found({logarithm}))
      .Case("costate.log10",
            Found({logarithm, 1, std::numbers::ln2 / std::numbers::ln10}))
      .Case("costate.rsqrt", Found({"llvm.nvvm.rsqrt.approx.f"}))
      .Default(std::nullopt);
}

/// What HostMaths.c has.
static bool isOfHost(StringRef name, bool isF64) {
  if (isF64)
    return llvm::is_contained({"sin", "cos", "exp"}, name);
  return !llvm::is_contained({"cbrt", "asin", "acos", "atan", "atan2", "fmod"},
                             name);
}

bool MathLibrary::isOwn(const Entry &entry, bool isF64) const {
  return maths >= Maths::NEON && isOfHost(entry.name, isF64);
}

bool MathLibrary::usesSleef(const Entry &entry) const {
  return maths >= Maths::SSE2 && entry.source == Source::Sleef;
}

/// As C++ mangles it: `_Z3sind`, `_Z3powff`.
static std::string libclcName(StringRef name, bool isF64, unsigned operands) {
  return "_Z" + llvm::utostr(name.size()) + name.str() +
         std::string(operands, isF64 ? 'd' : 'f');
}

/// `Sleef_finz_*` use fused multiply-add, `Sleef_cinz_*` do not.
static std::string sleefName(StringRef name, bool isF64, unsigned lanes,
                             StringRef suffix) {
  StringRef family = suffix == "sse2" || suffix == "purec" ? "cinz" : "finz";
  return ("Sleef_" + family + "_" + name + (isF64 ? "d" : "f") + Twine(lanes) +
          "_u10" + suffix)
      .str();
}

static std::string hostName(StringRef name, bool isF64, unsigned lanes) {
  return (hostFunctionPrefix + name + (isF64 ? "d" : "f") + Twine(lanes)).str();
}

std::string MathLibrary::function(StringRef operation, bool isF64) const {
  const Entry *entry = find(operation);
  if (!entry)
    return "";
  if (maths == Maths::Libclc)
    return libclcName(entry->name, isF64, entry->operands);
  if (isOwn(*entry, isF64))
    return hostName(entry->name, isF64, 1);
  if (!usesSleef(*entry))
    return (entry->name + (isF64 ? "" : "f")).str();
  return sleefName(entry->name, isF64, 1,
                   maths == Maths::SSE2 ? "purec" : "purecfma");
}

std::string MathLibrary::vectorName(const Entry &entry, bool isF64,
                                    unsigned lanes) const {
  if (isOwn(entry, isF64))
    return hostName(entry.name, isF64, lanes);
  unsigned bits = lanes * (isF64 ? 64 : 32);
  StringRef suffix = maths == Maths::SSE2   ? "sse2"
                     : maths == Maths::NEON ? "advsimd"
                     : bits == 128          ? "avx2128"
                     : bits == 256          ? "avx2"
                                            : "avx512f";
  return sleefName(entry.name, isF64, lanes, suffix);
}

/// LLVM splits vectors that are longer than a register.
SmallVector<unsigned> MathLibrary::laneCounts(const Entry &entry,
                                              bool isF64) const {
  if (isOwn(entry, isF64))
    return isF64 ? SmallVector<unsigned>{2, 4, 8, 16}
                 : SmallVector<unsigned>{4, 8, 16, 32};
  SmallVector<unsigned> counts = {isF64 ? 2u : 4u};
  if (maths >= Maths::AVX2)
    counts.push_back(isF64 ? 4 : 8);
  if (maths == Maths::AVX512)
    counts.push_back(isF64 ? 8 : 16);
  return counts;
}

std::pair<unsigned, std::string>
MathLibrary::piece(StringRef operation, bool isF64, unsigned lanes) const {
  const Entry *entry = find(operation);
  unsigned longest = 1;
  if (entry && hasVectors(*entry, isF64))
    for (unsigned count : laneCounts(*entry, isF64))
      longest = count <= lanes ? count : longest;
  return {longest, longest > 1 ? vectorName(*entry, isF64, longest)
                               : function(operation, isF64)};
}

static LLVM::LLVMFuncOp declarePure(ImplicitLocOpBuilder &builder,
                                    const Twine &name, Type type,
                                    unsigned operands) {
  SmallVector<Type> params(operands, type);
  auto function = LLVM::LLVMFuncOp::create(
      builder, name.str(), LLVM::LLVMFunctionType::get(type, params));
  auto none = LLVM::ModRefInfo::NoModRef;
  function.setMemoryEffectsAttr(LLVM::MemoryEffectsAttr::get(
      builder.getContext(), {none, none, none, none, none, none}));
  function.setNoUnwind(true);
  function.setWillReturn(true);
  return function;
}

void MathLibrary::declare(ModuleOp module, const Entry &entry,
                          bool isF64) const {
  std::string name = function(entry.operation, isF64);
  if (module.lookupSymbol(name))
    return;
  auto builder =
      ImplicitLocOpBuilder::atBlockBegin(module.getLoc(), module.getBody());
  Type type = isF64 ? Type(builder.getF64Type()) : builder.getF32Type();
  auto scalar = declarePure(builder, name, type, entry.operands);
  // LLVM must not replace a libm call by something with other bits.
  SmallVector<Attribute> attributes;
  if (hasVectors(entry, isF64))
    attributes.push_back(
        builder.getStrArrayAttr({"vector-function-abi-variant",
                                 declareVariants(builder, entry, isF64)}));
  else
    attributes.push_back(builder.getStringAttr("nobuiltin"));
  scalar.setPassthroughAttr(builder.getArrayAttr(attributes));
}

/// Declares the vector forms; returns the attribute that names them.
std::string MathLibrary::declareVariants(ImplicitLocOpBuilder &builder,
                                         const Entry &entry, bool isF64) const {
  std::string scalar = function(entry.operation, isF64);
  Type type = isF64 ? Type(builder.getF64Type()) : builder.getF32Type();
  SmallVector<std::string> variants;
  for (unsigned lanes : laneCounts(entry, isF64)) {
    std::string vector = vectorName(entry, isF64, lanes);
    declarePure(builder, vector, VectorType::get(lanes, type), entry.operands);
    std::string shape(entry.operands, 'v');
    variants.push_back(("_ZGV_LLVM_N" + Twine(lanes) + shape + "_" + scalar +
                        "(" + vector + ")")
                           .str());
  }
  return llvm::join(variants, ",");
}

void MathLibrary::declare(ModuleOp module) const {
  module.walk([&](Operation *op) {
    if (op->getNumResults() != 1)
      return;
    const Entry *entry = find(op->getName().getStringRef());
    Type type = getElementTypeOrSelf(op->getResult(0).getType());
    if (entry && isa<FloatType>(type) && !approximation(entry->operation, type))
      declare(module, *entry, type.isF64());
  });
}

} // namespace costate::conversion
