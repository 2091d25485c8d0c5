/// The functions of libclc that a `MathLibrary` may name; see CMakeLists.txt.

extern const unsigned char costateLibclcNvptx[];
extern const unsigned costateLibclcNvptxBytes;

alignas(8) const unsigned char costateLibclcNvptx[] = {
#include "compiler/libclc-nvptx.inc"
};
const unsigned costateLibclcNvptxBytes = sizeof costateLibclcNvptx;
