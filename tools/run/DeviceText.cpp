#include "run/DeviceText.h"

#include "code/DeviceCode.h"
#include "code/KernelCode.h"
#include "compiler/targets/Targets.h"

#include <spirv-tools/libspirv.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace costate::run {

std::vector<std::string> deviceLanguages() {
  std::vector<std::string> languages;
  for (const compiler::TargetKind *kind : compiler::targetKinds())
    if (kind->language)
      languages.push_back(kind->language);
  return languages;
}

std::string usualChip(const std::string &language) {
  return compiler::kindWith(language)->usual();
}

static bool isSpirv(const std::string &image) {
  constexpr uint32_t magic = 0x07230203;
  uint32_t first = 0;
  std::memcpy(&first, image.data(), std::min(image.size(), sizeof first));
  return first == magic;
}

static Result<std::string> disassembled(const std::string &image) {
  std::vector<uint32_t> words(image.size() / sizeof(uint32_t));
  std::memcpy(words.data(), image.data(), words.size() * sizeof(uint32_t));
  std::string text, message;
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_3);
  tools.SetMessageConsumer(
      [&](auto, auto, const auto &, const char *said) { message = said; });
  if (!tools.Disassemble(words, &text,
                         SPV_BINARY_TO_TEXT_OPTION_INDENT |
                             SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES))
    return Failure{ErrorCode::Internal,
                   "SPIRV-Tools do not know this SPIR-V (" + message +
                       "); COSTATE_CACHE=0 COSTATE_KEEP_CODE=FOLDER "
                       "keeps its words"};
  return text;
}

Result<std::string> deviceText(compiler::Program &program,
                               compiler::Derivation derivation,
                               const std::string &language,
                               const std::string &chip) {
  const compiler::TargetKind &kind = *compiler::kindWith(language);
  if (!compiler::isOf(chip, kind))
    return Failure{ErrorCode::BadFile, "`" + chip + "` is no chip for " +
                                           language + ", as `" +
                                           usualChip(language) + "` is"};
  derivation.target = chip;
  auto code = program.compile(derivation);
  if (!code)
    return code.error();
  const std::string &image = code->device->image;
  if (kind.text)
    return kind.text(image);
  return isSpirv(image) ? disassembled(image) : image;
}

} // namespace costate::run
