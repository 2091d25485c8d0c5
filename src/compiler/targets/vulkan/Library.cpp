#include "compiler/targets/vulkan/Library.h"

alignas(8) static const unsigned char bytes[] = {
#include "compiler/library-vulkan.inc"
};

llvm::StringRef costate::compiler::vulkanLibrary() {
  return {reinterpret_cast<const char *>(bytes), sizeof bytes};
}
