#include "run/DeviceText.h"

#include "base/VulkanChip.h"
#include "code/DeviceCode.h"
#include "code/KernelCode.h"

#include <spirv-tools/libspirv.hpp>

#include <cstdint>
#include <cstring>
#include <vector>

namespace costate::run {

static std::string usualVulkan() {
  auto features = VulkanFeatures::everything();
  features.reconvergence = false; // younger than Debian's SPIRV-Tools
  features.warps = features.canHaveWarps();
  return vulkanChip(features);
}

std::string usualChip(const std::string &language) {
  return language == "ptx" ? "sm_90" : usualVulkan();
}

static bool isOf(const std::string &language, const std::string &chip) {
  return language == "ptx" ? chip.starts_with("sm_")
                           : parseVulkanChip(chip).has_value();
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
  if (!isOf(language, chip))
    return Failure{ErrorCode::BadFile, "`" + chip + "` is no chip for " +
                                           language + ", as `" +
                                           usualChip(language) + "` is"};
  derivation.target = chip;
  auto code = program.compile(derivation);
  if (!code)
    return code.error();
  const std::string &image = code->device->image;
  return language == "ptx" ? image : disassembled(image);
}

} // namespace costate::run
