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

static const RuntimeFunction functions[] = {
    FUNCTION(costate_range),
    FUNCTION(costate_copies),
    FUNCTION(costate_copy),
    FUNCTION(costate_tape_grow),
    FUNCTION(costate_dry_run),
    FUNCTION(costate_lengths_differ),
    FUNCTION(costate_order_by_length),
    FUNCTIONS(costate_add_later),
    FUNCTION(costate_add_later_f16),
    FUNCTION(costate_index_error),
    FUNCTION(costate_step_zero),
    FUNCTION(costate_print),
    FUNCTION(costate_assert_failed),
    FUNCTION(costate_refused),
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
#define COSTATE_OF_Runtime(name) FUNCTION(name),
#define COSTATE_OF_Compiler(name)
#define COSTATE_OF_None(name)
#define COSTATE_DEVICE(gpu, host, name) COSTATE_OF_##host(costate_device_##name)
#include "device/functions.def"
};

#undef FUNCTION

std::span<const RuntimeFunction> runtimeFunctions() { return functions; }

} // namespace costate::runtime
