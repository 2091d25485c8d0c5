#include "compiler/targets/amd/Library.h"

alignas(8) static const unsigned char bytes[] = {
#include "compiler/library-amd.inc"
};

llvm::StringRef costate::compiler::amdLibrary() {
  return {reinterpret_cast<const char *>(bytes), sizeof bytes};
}
