/// HostMaths.c; see CMakeLists.txt.

extern const unsigned char costateHostLibrary[];
extern const unsigned costateHostLibraryBytes;

alignas(8) const unsigned char costateHostLibrary[] = {
#include "compiler/library-host.inc"
};
const unsigned costateHostLibraryBytes = sizeof costateHostLibrary;
