#include "code/RuntimeFunctions.h"

#include "code/DeviceCode.h"
#include "code/KernelCode.h"
#include "runtime/simt/Callbacks.h"

namespace costate::runtime {

template <class R, class... A> static void *addressOf(R (*function)(A...)) {
  return reinterpret_cast<void *>(function);
}

#define FUNCTION(name)                                                         \
  RuntimeFunction { #name, addressOf(name) }
#define FUNCTIONS(name) FUNCTION(name##_f32), FUNCTION(name##_f64)

#define BLOCK(name) FUNCTION(costate_device_block_##name)
#define WARP(name) FUNCTION(costate_device_warp_##name)
#define SHUFFLE(name) WARP(name), WARP(name##_i64)
/// Of costate/detail/group_operations.def.
#define GROUP_FUNCTIONS                                                        \
  BLOCK(thread_index), BLOCK(global_thread_index), BLOCK(sync), BLOCK(fence),  \
      FUNCTION(costate_device_grid_fence), WARP(sync), WARP(active_mask),      \
      SHUFFLE(shuffle), SHUFFLE(shuffle_up), SHUFFLE(shuffle_down),            \
      SHUFFLE(shuffle_xor), WARP(all), WARP(any), WARP(unique), WARP(ballot),  \
      WARP(match_any), WARP(match_all)

static const RuntimeFunction functions[] = {
    FUNCTION(costate_range),
    FUNCTION(costate_copies),
    FUNCTION(costate_copy),
    FUNCTION(costate_tape_grow),
    FUNCTION(costate_dry_run),
    FUNCTIONS(costate_add_later),
    FUNCTION(costate_add_later_f16),
    FUNCTION(costate_index_error),
    FUNCTION(costate_step_zero),
    FUNCTION(costate_print),
    FUNCTION(costate_assert_failed),
    FUNCTION(costate_refused),
    FUNCTION(costate_device_print),
    FUNCTION(costate_device_assert_failed),
    FUNCTION(costate_device_refused),
    FUNCTION(costate_begin_range),
    FUNCTION(costate_use),
    FUNCTION(costate_not_finite),
    FUNCTION(costate_element_not_finite),
    FUNCTIONS(costate_check_sum),
    FUNCTION(costate_check_sum_f16),
    FUNCTION(costate_device_run),
    FUNCTION(costate_device_read),
    FUNCTION(costate_device_copy),
    FUNCTION(costate_device_begin_range),
    FUNCTION(costate_device_index_error),
    FUNCTION(costate_device_step_zero),
    FUNCTION(costate_device_not_finite),
    FUNCTION(costate_device_element_not_finite),
    FUNCTION(costate_device_sum_not_finite),
    FUNCTION(costate_device_warp_max),
    FUNCTIONS(costate_device_add_common),
    FUNCTIONS(costate_device_add_in_block),
    FUNCTION(costate_device_begin_in_block),
    FUNCTION(costate_device_end_in_block),
    FUNCTION(costate_device_warp_max_at),
    FUNCTION(costate_device_block_barrier),
    GROUP_FUNCTIONS,
    FUNCTION(costate_device_tape_place),
    FUNCTION(costate_device_tape_drains),
    FUNCTION(costate_device_tape_fence),
    FUNCTION(costate_device_tape_ahead),
    FUNCTION(costate_device_tape_begin),
    FUNCTION(costate_device_tape_tile),
    FUNCTION(costate_device_tape_work_item),
    FUNCTION(costate_device_tape_next),
    FUNCTION(costate_device_tape_report),
    FUNCTION(costate_device_tape_end),
    FUNCTION(costate_device_tape_kept),
    FUNCTION(costate_device_tape_segment),
    FUNCTION(costate_device_tape_min_rows),
    FUNCTION(costate_device_sort_begin),
    FUNCTION(costate_device_sort_work_item),
    FUNCTION(costate_device_sort_take),
    FUNCTION(costate_device_sort_next),
    FUNCTION(costate_device_sort_rounds),
    FUNCTION(costate_device_sort_end),
};

#undef FUNCTION

std::span<const RuntimeFunction> runtimeFunctions() { return functions; }

} // namespace costate::runtime
