/// The functions of libclc that a `MathLibrary` may name, and what is ours; see
/// CMakeLists.txt.

extern const unsigned char costateNvidiaLibrary[], costateVulkanLibrary[];
extern const unsigned costateNvidiaLibraryBytes, costateVulkanLibraryBytes;

alignas(8) const unsigned char costateNvidiaLibrary[] = {
#include "compiler/library-nvidia.inc"
};
alignas(8) const unsigned char costateVulkanLibrary[] = {
#include "compiler/library-vulkan.inc"
};
const unsigned costateNvidiaLibraryBytes = sizeof costateNvidiaLibrary;
const unsigned costateVulkanLibraryBytes = sizeof costateVulkanLibrary;
