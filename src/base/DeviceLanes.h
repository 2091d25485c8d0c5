#pragma once
/// Lanes of a warp, in C: a constant for a GPU, and a choice of the device for
/// the host as one.

// NOLINTBEGIN

#ifdef __NVPTX__
#ifndef COSTATE_LANES
#define COSTATE_LANES 32
#endif
enum { deviceLanes = COSTATE_LANES };
#else
#ifdef __cplusplus
extern "C" long costate_device_lanes(void);
#else
long costate_device_lanes(void);
#endif
#define deviceLanes ((unsigned)costate_device_lanes())
#endif

// NOLINTEND
