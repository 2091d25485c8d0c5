// The code of volk.

#include <dlfcn.h>

#pragma GCC visibility push(hidden)
#define VK_NO_PROTOTYPES
#define VOLK_IMPLEMENTATION
#include <volk.h>
#pragma GCC visibility pop
