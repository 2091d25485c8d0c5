#pragma once
/// Atomics of device code, in C. LLVM forgets the order of what changes memory
/// on NVIDIA GPUs.

// NOLINTBEGIN

/// Adds, and returns what was there; says nothing of other memory.
static inline unsigned long long deviceAdd(unsigned long long *cell,
                                           unsigned long long value) {
  return __atomic_fetch_add(cell, value, __ATOMIC_RELAXED);
}

/// Adds, and returns what was there: what this thread, and those that it has
/// met, did before comes before; what others did before they added to the same
/// cell is there after.
static inline unsigned long long deviceAddInOrder(unsigned long long *cell,
                                                  unsigned long long value) {
#if defined(__NVPTX__) && !defined(COSTATE_TRANSLATED)
  unsigned long long old;
  __asm__ volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;"
                   : "=l"(old)
                   : "l"((__attribute__((address_space(1))) void *)cell),
                     "l"(value)
                   : "memory");
  return old;
#else
  return __atomic_fetch_add(cell, value, __ATOMIC_ACQ_REL);
#endif
}

/// What it says was written before is there after.
static inline unsigned long long
deviceLoadInOrder(const unsigned long long *cell) {
  return __atomic_load_n(cell, __ATOMIC_ACQUIRE);
}

// NOLINTEND
