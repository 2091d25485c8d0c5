// DeviceSums.c as it is for Vulkan, for tests on the host.

#define COSTATE_VULKAN
#define costate_device_block_sum costate_test_block_sum
#define costate_device_add_up costate_test_add_up
#define costate_device_add_up_pair costate_test_add_up_pair
#define costate_device_finish_sums costate_test_finish_sums
#include "device/DeviceSums.c"
