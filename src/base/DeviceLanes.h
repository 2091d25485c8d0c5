#pragma once
/// Lanes of a warp, in C: a constant for GPUs, which targets of several answer
/// when they make kernels, and a choice of the device for the host as one.

// NOLINTBEGIN

#if defined(__NVPTX__) && !defined(COSTATE_ASKS_LANES)
enum { deviceLanes = 32 };
#else
#ifdef __cplusplus
extern "C" long costate_device_lanes(void);
#else
#ifdef __NVPTX__
__attribute__((const))
#endif
long costate_device_lanes(void);
#endif
#define deviceLanes ((unsigned)costate_device_lanes())
#endif

// NOLINTEND
