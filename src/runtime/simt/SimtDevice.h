#pragma once
/// The host as a GPU: device code runs on its cores. For tests of what GPUs
/// run, on machines without one.

#include "runtime/Device.h"
#include "runtime/gpu/Driver.h"
#include "runtime/gpu/Sort.h"

#include <memory>
#include <optional>

namespace costate::runtime {
namespace simt {

/// `seed` of COSTATE_SIMT, or a number that is always the same.
uint64_t chosenSeed();
/// `lanes` of COSTATE_SIMT, or 32.
int chosenLanes();
/// `block` of COSTATE_SIMT, or as many as on most GPUs; a warp at least.
int chosenBlockThreads();
/// Bytes of a multiprocessor: `shared` KiB of COSTATE_SIMT, or as many as on
/// an H200.
size_t chosenShared();
/// `chip` KiB of COSTATE_SIMT, or no more than that.
size_t chosenChip();
/// Whether `registers` of COSTATE_SIMT is `few`: a quarter of the threads have
/// some at a time.
bool chosenFewRegisters();
/// Whether `sort` of COSTATE_SIMT is `apart`.
bool chosenSortsApart();
/// Whether `copies` of COSTATE_SIMT is `beside`.
bool chosenCopiesBeside();

struct Options {
  int threads = 1; ///< of the host
  /// Of what is left to chance where threads wait for each other.
  uint64_t seed = chosenSeed();
  size_t sharedPerBlock = chosenShared() - 1024;
  size_t sharedPerMultiprocessor = chosenShared();
  size_t sharedOfChip = chosenChip();
  size_t l2Bytes = 32 << 20;
  int lanes = chosenLanes();                       ///< of a warp: 32 or 64
  int blockThreads = chosenBlockThreads();         ///< a multiple of that
  std::optional<size_t> tapeBudget = std::nullopt; ///< see gpu/GpuDevice.h
  bool validate = false; ///< see gpu/ValidatingDriver.h
  gpu::Sorting sorting = gpu::Sorting::Always;
  bool sortsApart = chosenSortsApart();
  bool fewRegisters = chosenFewRegisters();
  /// Small copies use the second stream too.
  bool copiesBeside = chosenCopiesBeside();
};

std::shared_ptr<gpu::Driver> createDriver(const Options &options);

} // namespace simt

/// `threads` and `memoryLimit` as in openCpu.
Result<std::shared_ptr<Device>> openSimt(int threads, size_t memoryLimit,
                                         simt::Options options = {});

} // namespace costate::runtime
