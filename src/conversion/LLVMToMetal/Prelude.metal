// What every program starts with. Nothing is reordered, contracted or taken for
// finite; division and roots are rounded once.
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

// What a launch hands over: global addresses.
struct costate_launch {
  ulong words; // of the launch
  ulong locks; // uint, all 0
};
constant uint costate_lock_count = 256;

// clang-format off
#define COSTATE_PARAMETERS \
  constant costate_launch &launch [[buffer(0)]], \
  threadgroup uchar *shared [[threadgroup(0)]], \
  uint in_block [[thread_index_in_threadgroup]], \
  uint block [[threadgroup_position_in_grid]], \
  uint blocks [[threadgroups_per_grid]], \
  uint block_threads [[threads_per_threadgroup]]
// clang-format on

// Other threadgroups see what is stored there, once there was a fence.
#define COSTATE_GLOBAL coherent(device) device

// A word may have been written as one of another type.
typedef uchar costate_u8;
typedef ushort costate_u16 __attribute__((may_alias));
typedef uint costate_u32 __attribute__((may_alias));
typedef ulong costate_u64 __attribute__((may_alias));

#define COSTATE_ACCESS(prefix, space, Place, bits, word)                       \
  static inline word prefix##load##bits(Place at) {                            \
    return *reinterpret_cast<space costate_u##bits *>(at);                     \
  }                                                                            \
  static inline void prefix##store##bits(Place at, word value) {               \
    *reinterpret_cast<space costate_u##bits *>(at) = value;                    \
  }
#define COSTATE_ACCESSES(prefix, space, Place)                                 \
  COSTATE_ACCESS(prefix, space, Place, 8, uint)                                \
  COSTATE_ACCESS(prefix, space, Place, 16, uint)                               \
  COSTATE_ACCESS(prefix, space, Place, 32, uint)                               \
  COSTATE_ACCESS(prefix, space, Place, 64, ulong)                              \
  /* 64 bits at an odd word. */                                                \
  static inline ulong prefix##load64_halves(Place at) {                        \
    return ulong(prefix##load32(at + 4)) << 32 | prefix##load32(at);           \
  }                                                                            \
  static inline void prefix##store64_halves(Place at, ulong value) {           \
    prefix##store32(at, uint(value));                                          \
    prefix##store32(at + 4, uint(value >> 32));                                \
  }

COSTATE_ACCESSES(costate_, COSTATE_GLOBAL, ulong)
COSTATE_ACCESSES(costate_shared_, threadgroup, threadgroup uchar *)
COSTATE_ACCESSES(costate_own_, thread, thread uchar *)

// Threads.

static inline void costate_block_barrier() {
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
}
static inline void costate_simdgroup_barrier() {
  simdgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
}
static inline void costate_device_fence() {
  atomic_thread_fence(mem_flags::mem_device | mem_flags::mem_threadgroup,
                      memory_order_seq_cst, thread_scope_device);
}
static inline void costate_block_fence() {
  atomic_thread_fence(mem_flags::mem_device | mem_flags::mem_threadgroup,
                      memory_order_seq_cst, thread_scope_threadgroup);
}

// Atomics of words.

#define COSTATE_ATOMIC(space, Place, name, word, function)                     \
  static inline uint costate_atomic32_##name(Place at, uint value) {                  \
    return uint(function(reinterpret_cast<space atomic_##word *>(at),          \
                         word(value), memory_order_relaxed));                  \
  }
#define COSTATE_ATOMICS(space, Place)                                          \
  COSTATE_ATOMIC(space, Place, exchange, uint, atomic_exchange_explicit)       \
  COSTATE_ATOMIC(space, Place, add, uint, atomic_fetch_add_explicit)           \
  COSTATE_ATOMIC(space, Place, sub, uint, atomic_fetch_sub_explicit)           \
  COSTATE_ATOMIC(space, Place, bit_and, uint, atomic_fetch_and_explicit)           \
  COSTATE_ATOMIC(space, Place, bit_or, uint, atomic_fetch_or_explicit)             \
  COSTATE_ATOMIC(space, Place, bit_xor, uint, atomic_fetch_xor_explicit)           \
  COSTATE_ATOMIC(space, Place, umax, uint, atomic_fetch_max_explicit)          \
  COSTATE_ATOMIC(space, Place, umin, uint, atomic_fetch_min_explicit)          \
  COSTATE_ATOMIC(space, Place, max, int, atomic_fetch_max_explicit)            \
  COSTATE_ATOMIC(space, Place, min, int, atomic_fetch_min_explicit)            \
  static inline uint costate_atomic32_load(Place at) {                                \
    return atomic_load_explicit(reinterpret_cast<space atomic_uint *>(at),     \
                                memory_order_relaxed);                         \
  }                                                                            \
  static inline void costate_atomic32_store(Place at, uint value) {                   \
    atomic_store_explicit(reinterpret_cast<space atomic_uint *>(at), value,    \
                          memory_order_relaxed);                               \
  }                                                                            \
  /* What was there. The exchange of Metal may fail for no reason. */          \
  static inline uint costate_atomic32_compare(Place at, uint expected,                \
                                       uint desired) {                         \
    uint seen = expected;                                                      \
    while (!atomic_compare_exchange_weak_explicit(                             \
               reinterpret_cast<space atomic_uint *>(at), &seen, desired,      \
               memory_order_relaxed, memory_order_relaxed) &&                  \
           seen == expected)                                                   \
      ;                                                                        \
    return seen;                                                               \
  }

COSTATE_ATOMICS(device, ulong)
COSTATE_ATOMICS(threadgroup, threadgroup uchar *)

static inline float costate_atomic32_fadd(ulong at, float value) {
  return atomic_fetch_add_explicit(
      reinterpret_cast<device atomic_float *>(at), value, memory_order_relaxed);
}

// Atomics of 64 bits. Whoever has the lock of a cell gives it back in the
// iteration that it got it in, as lanes may run in lockstep.

static inline ulong costate_key(ulong at) { return at; }
static inline ulong costate_key(threadgroup uchar *) { return 0; }
template <typename Place> inline ulong costate_read(Place at) {
  return ulong(costate_atomic32_load(at + 4)) << 32 | costate_atomic32_load(at);
}
template <typename Place> inline void costate_write(Place at, ulong value) {
  costate_atomic32_store(at, uint(value));
  costate_atomic32_store(at + 4, uint(value >> 32));
}

// `next`: of what was there, which is returned.
#define COSTATE_LOCKED(name, parameters, next)                                 \
  template <typename Place>                                                    \
  static inline ulong costate_atomic64_##name parameters {                            \
    ulong lock = launch.locks +                                                \
                 4 * (costate_key(at) / 8 % costate_lock_count);               \
    ulong old = 0;                                                             \
    bool isDone = false;                                                       \
    while (!isDone) {                                                          \
      if (costate_atomic32_exchange(lock, 1u))                                 \
        continue;                                                              \
      costate_device_fence();                                                  \
      old = costate_read(at);                                                  \
      costate_write(at, next);                                                 \
      costate_device_fence();                                                  \
      costate_atomic32_store(lock, 0u);                                        \
      isDone = true;                                                           \
    }                                                                          \
    return old;                                                                \
  }
#define COSTATE_UPDATE(name, next)                                             \
  COSTATE_LOCKED(name,                                                         \
                 (constant costate_launch & launch, Place at, ulong value),    \
                 next)

COSTATE_UPDATE(exchange, value)
COSTATE_UPDATE(add, old + value)
COSTATE_UPDATE(sub, old - value)
COSTATE_UPDATE(bit_and, old & value)
COSTATE_UPDATE(bit_or, old | value)
COSTATE_UPDATE(bit_xor, old ^ value)
COSTATE_UPDATE(umax, old > value ? old : value)
COSTATE_UPDATE(umin, old < value ? old : value)
COSTATE_UPDATE(max, long(old) > long(value) ? old : value)
COSTATE_UPDATE(min, long(old) < long(value) ? old : value)
COSTATE_LOCKED(load, (constant costate_launch & launch, Place at), old)
COSTATE_LOCKED(compare,
               (constant costate_launch & launch, Place at, ulong expected,
                ulong desired),
               old == expected ? desired : old)

template <typename Place>
static inline void costate_atomic64_store(constant costate_launch &launch, Place at,
                                   ulong value) {
  costate_atomic64_exchange(launch, at, value);
}
