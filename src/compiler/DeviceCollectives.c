// How the threads of an NVIDIA GPU wait for each other. For bitcode that is
// linked into device code, see CMakeLists.txt; runtime/simt/Block.cpp does the
// same on the host. Threads that have ended are not waited for.

#define INLINE __attribute__((always_inline))

enum { allLanes = -1, warpSize = 32 };

unsigned reflect(const char *) __asm__("__nvvm_reflect");
unsigned maximum(unsigned, int) __asm__("llvm.nvvm.redux.sync.umax");

// Older chips: from the highest bit on, lanes with a 0 drop out where another
// one has a 1. Unlike shuffles, votes do not read lanes that have ended.
static unsigned maximumByVotes(unsigned value) {
  unsigned most = 0;
  _Bool stays = 1;
  for (int bit = 31; bit >= 0; --bit) {
    _Bool has = stays && value >> bit & 1;
    if (!__nvvm_vote_any_sync(allLanes, has))
      continue;
    most |= 1u << bit;
    stays = has;
  }
  return most;
}

INLINE static unsigned warpMax(unsigned value) {
  return reflect("__CUDA_ARCH") >= 800 ? maximum(value, allLanes)
                                       : maximumByVotes(value);
}

INLINE unsigned long costate_device_warp_max(unsigned long value) {
  unsigned low = value, high = value >> 32;
  unsigned long most = 0;
  if (__nvvm_vote_any_sync(allLanes, high != 0))
    most = warpMax(high);
  return most << 32 | warpMax(high == most ? low : 0);
}

static double shuffleDown(double value, int lanes) {
  long bits = __builtin_bit_cast(long, value);
  int low = __nvvm_shfl_sync_down_i32(allLanes, (int)bits, lanes, 31);
  int high = __nvvm_shfl_sync_down_i32(allLanes, (int)(bits >> 32), lanes, 31);
  return __builtin_bit_cast(double, (long)high << 32 | (unsigned)low);
}

// In the first lane.
INLINE double costate_device_warp_add(double value) {
  int thread = __nvvm_read_ptx_sreg_tid_x();
  int lane = thread % warpSize;
  int lanes = __nvvm_read_ptx_sreg_ntid_x() - (thread - lane);
  for (int step = warpSize / 2; step; step /= 2) {
    double other = shuffleDown(value, step);
    value += lane + step < lanes ? other : 0;
  }
  return value;
}

INLINE void costate_device_block_barrier(void) { __nvvm_barrier_sync(0); }

INLINE long costate_device_block_threads(void) {
  return __nvvm_read_ptx_sreg_ntid_x();
}
