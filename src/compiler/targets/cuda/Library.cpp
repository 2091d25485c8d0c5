#include "compiler/targets/cuda/Library.h"

alignas(8) static const unsigned char bytes[] = {
#include "compiler/library-cuda.inc"
};

llvm::StringRef costate::compiler::cudaLibrary() {
  return {reinterpret_cast<const char *>(bytes), sizeof bytes};
}
