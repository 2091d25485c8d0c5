// What LLD would call of LLVM that nobody needs: see link_llvm.sh.
void costate_nothing(void) {}
