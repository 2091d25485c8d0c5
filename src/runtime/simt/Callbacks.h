#pragma once
/// What device code calls on the host as a GPU.

#include "base/AmdHost.h"

#include <cstddef>
#include <cstdint>

namespace costate::runtime {

/// The words of a thread: see conversion/KernelToLLVM/Runtime.h.
struct DeviceWorker;

extern "C" {
[[noreturn]] void costate_device_index_error(DeviceWorker *worker, int64_t site,
                                             int64_t parameter, int64_t dim,
                                             int64_t index, int64_t extent);
[[noreturn]] void costate_device_step_zero(DeviceWorker *worker, int64_t site);
[[noreturn]] void costate_device_not_finite(DeviceWorker *worker, int64_t site,
                                            int64_t text, int64_t count,
                                            double a, double b, double c,
                                            double d);
[[noreturn]] void costate_device_element_not_finite(DeviceWorker *worker,
                                                    int64_t site, int64_t text,
                                                    int64_t parameter,
                                                    int64_t element,
                                                    double value);
[[noreturn]] void costate_device_sum_not_finite(DeviceWorker *worker,
                                                int64_t site, int64_t text,
                                                int64_t parameter,
                                                int64_t element, double added,
                                                double sum);

[[noreturn]] void costate_device_assert_failed(DeviceWorker *worker,
                                               int64_t site, int64_t text,
                                               int64_t count, int64_t a,
                                               int64_t b, int64_t c, int64_t d);
[[noreturn]] void costate_device_refused(DeviceWorker *worker, int64_t site,
                                         int64_t text, int64_t count, int64_t a,
                                         int64_t b, int64_t c, int64_t d);
void costate_device_print(DeviceWorker *worker, int64_t site, int64_t text,
                          int64_t count, int64_t a, int64_t b, int64_t c,
                          int64_t d, int64_t e, int64_t f, int64_t g,
                          int64_t h);

/// The largest value of the lanes of the caller's warp that have not ended. All
/// of them call it.
uint64_t costate_device_warp_max(uint64_t value);
/// The same for a place in the code: lanes that meet must agree on it.
uint64_t costate_device_warp_max_at(uint64_t value, int64_t place);
/// Waits until all lanes of the caller's warp that have not ended call it.
void costate_device_warp_barrier();
/// Waits until all threads of the block that have not ended call it.
void costate_device_block_barrier();
/// The sum over the caller's warp, in its first lane; as device/
/// DeviceCollectives.c adds.
double costate_device_warp_add(double value);
/// `kind`: a CostateSums.
double costate_device_warp_fold(double value, int64_t kind);
int64_t costate_device_block_threads();
/// Of a warp.
int64_t costate_device_lanes();

/// What kernels call (costate/detail/group_operations.def), with the number of
/// the place in the source. Lanes that have ended are not waited for.
int32_t costate_device_block_thread_index(int64_t site);
int32_t costate_device_block_global_thread_index(int64_t site);
void costate_device_block_sync(int64_t site);
void costate_device_block_fence(int64_t site);
void costate_device_grid_fence(int64_t site);
void costate_device_warp_sync(int32_t mask, int64_t site);
int32_t costate_device_warp_active_mask(int64_t site);
#define COSTATE_SHUFFLE(name)                                                  \
  int32_t costate_device_warp_##name(int32_t mask, int32_t value,              \
                                     int32_t distance, int64_t site);          \
  int64_t costate_device_warp_##name##_i64(int32_t mask, int64_t value,        \
                                           int32_t distance, int64_t site);
COSTATE_SHUFFLE(shuffle)
COSTATE_SHUFFLE(shuffle_up)
COSTATE_SHUFFLE(shuffle_down)
COSTATE_SHUFFLE(shuffle_xor)
#undef COSTATE_SHUFFLE
#define COSTATE_VOTE(name)                                                     \
  int32_t costate_device_warp_##name(int32_t mask, int32_t value, int64_t site);
COSTATE_VOTE(all)
COSTATE_VOTE(any)
COSTATE_VOTE(unique)
COSTATE_VOTE(ballot)
COSTATE_VOTE(match_any)
COSTATE_VOTE(match_all)
#undef COSTATE_VOTE
/// Adds to an element that is likely the same for all lanes.
void costate_device_add_common_f32(float *place, float value);
void costate_device_add_common_f64(double *place, double value);
/// The same for an array of `elements`, to what the block adds up between
/// `begin` and `end`, which all of its threads call.
void costate_device_add_in_block_f32(float *place, float value,
                                     int64_t elements);
void costate_device_add_in_block_f64(double *place, double value,
                                     int64_t elements);
void costate_device_begin_in_block();
void costate_device_end_in_block();

/// Tapes of warps: device/DeviceTape.c.
void costate_device_tape_place();
void costate_device_tape_drains();
void costate_device_tape_fence();
void costate_device_tape_ahead();
void costate_device_tape_begin();
void costate_device_tape_tile();
void costate_device_tape_work_item();
void costate_device_tape_next();
void costate_device_tape_report();
void costate_device_tape_end();
void costate_device_tape_kept();
void costate_device_tape_segment();
void costate_device_tape_min_rows();

/// Sorting by depth: device/DeviceSort.c.
void costate_device_sort_begin();
void costate_device_sort_work_item();
void costate_device_sort_take();
void costate_device_sort_next();
void costate_device_sort_rounds();
void costate_device_sort_end();
}

namespace simt {

/// See AmdHostCalls.
uint64_t together(LaneOp op, uint64_t value, int32_t from, const int64_t *path,
                  int64_t length);

/// `memory` is shared by the threads of a block; null if there is none.
using DeviceEntry = void (*)(const uint64_t *words, int64_t thread,
                             int64_t threads, std::byte *memory);

/// Ends the running thread of the device.
[[noreturn]] void leaveThread();

} // namespace simt
} // namespace costate::runtime
