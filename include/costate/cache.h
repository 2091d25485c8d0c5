#pragma once
/// Compiled code that is kept in files, so that no process compiles what
/// another one has compiled before.

#include <cstdint>
#include <string>

namespace costate {

/// What the environment says counts more: COSTATE_CACHE=0, COSTATE_CACHE_DIR,
/// COSTATE_CACHE_SIZE.
struct CacheOptions {
  bool enabled = true;
  /// Empty: `costate` in $XDG_CACHE_HOME, or in ~/.cache.
  std::string folder = {};
  /// Bytes. What was not used for longest goes.
  uint64_t limit = uint64_t(1) << 30;
};

/// For kernels that are made from here on, in all threads.
void use_cache(const CacheOptions &options);

struct CacheStatistics {
  /// Modes of kernels that were compiled although a cache is used, and those
  /// that were found there, in this process.
  uint64_t compiled = 0, loaded = 0;
  std::string folder;  ///< empty: no cache is used
  std::string problem; ///< why some code could not be kept; empty: all could
  uint64_t bytes = 0;  ///< of all that is kept there, by any process
};

/// Of the cache that the next kernel uses. Error(BadArgument) if
/// COSTATE_CACHE_SIZE is no size.
CacheStatistics cache_statistics();

/// Removes what the cache holds. Kernels that are loaded go on.
void clear_cache();

/// Is told that this thread looks for the code of a kernel, in the cache or by
/// compiling it, and that it has found it, or failed. Must not throw.
using CompilationWatch = void (*)(const std::string &kernel, bool begins);
/// From here on, for all threads; null: nobody is told.
void watch_compilation(CompilationWatch watch);

} // namespace costate
