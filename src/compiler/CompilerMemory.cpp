#include "compiler/CompilerMemory.h"

#include "llvm/Support/ErrorHandling.h"

#include <new>
#include <sys/mman.h>

namespace costate::compiler {

bool hasMemoryToCompile() {
  constexpr size_t usual = 32u << 20;
  void *room = mmap(nullptr, usual, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return room != MAP_FAILED && munmap(room, usual) == 0;
}

Failure noMemoryToCompile() {
  return {ErrorCode::OutOfMemory,
          "the system has no memory left to compile a kernel; release arrays, "
          "or raise the limit of this process (`ulimit -v`)"};
}

void throwWhenMemoryEnds() {
  static const bool installed = [] {
    llvm::install_bad_alloc_error_handler(
        [](void *, const char *, bool) { throw std::bad_alloc(); });
    return true;
  }();
  (void)installed;
}

} // namespace costate::compiler
