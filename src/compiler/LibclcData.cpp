/// The functions of libclc that a `MathLibrary` may name, and what is ours; see
/// CMakeLists.txt.

extern const unsigned char costateNvidiaLibrary[], costateVulkanLibrary[],
    costateHostLibrary[];
extern const unsigned costateNvidiaLibraryBytes, costateVulkanLibraryBytes,
    costateHostLibraryBytes;

alignas(8) const unsigned char costateNvidiaLibrary[] = {
#include "compiler/library-nvidia.inc"
};
alignas(8) const unsigned char costateVulkanLibrary[] = {
#include "compiler/library-vulkan.inc"
};
alignas(8) const unsigned char costateHostLibrary[] = {
#include "compiler/library-host.inc"
};
const unsigned costateNvidiaLibraryBytes = sizeof costateNvidiaLibrary;
const unsigned costateVulkanLibraryBytes = sizeof costateVulkanLibrary;
const unsigned costateHostLibraryBytes = sizeof costateHostLibrary;
