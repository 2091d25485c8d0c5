#pragma once
/// How the threads of a grid add up numbers; DeviceSums.c, for the host as a
/// GPU.
/// `kind`: a CostateSums.

#include <cstdint>

extern "C" {
void costate_device_add_up(double *partials, int64_t count, int64_t first,
                           int64_t thread, double *memory, int64_t k,
                           int64_t kind, double value);
void costate_device_add_up_pair(double *partials, int64_t count, int64_t first,
                                int64_t thread, double *memory, double key,
                                double place);
double costate_device_block_sum(int64_t thread, double *memory, int64_t k,
                                double value);
int64_t costate_device_finish_sums(double *partials, int64_t count,
                                   uint64_t *ticket, int64_t thread,
                                   int64_t threads, double *memory,
                                   int64_t sums, int64_t kind, double *to);
}
