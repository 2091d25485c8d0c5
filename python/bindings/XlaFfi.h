#pragma once
/// What calls of XLA look like: its C interface for functions of others, as far
/// as it is used here (`xla/ffi/api/c_api.h`, version 0.3). XLA tells the sizes
/// of its structures, which grow at their ends.

#include <cstddef>
#include <cstdint>

namespace costate::python::xla {

struct Api;
struct Context; // of one execution; known to XLA alone
struct Failure; // the same
struct Frame;

struct Extension {
  size_t size;
  int32_t type;
  Extension *next;
};

struct Version {
  size_t size;
  Extension *extensions;
  int32_t major, minor;
};

struct Metadata {
  size_t size;
  Version version;
  uint32_t traits;
};

/// What XLA asks for when the function is registered: no call.
struct MetadataExtension {
  static constexpr int32_t type = 1;
  Extension base;
  Metadata *metadata;
};

struct FailureToMake {
  size_t size = sizeof(FailureToMake);
  Extension *extensions = nullptr;
  const char *message = nullptr;
  int32_t code = 3; // INVALID_ARGUMENT
};

struct StreamToGet {
  size_t size = sizeof(StreamToGet);
  Extension *extensions = nullptr;
  Context *context = nullptr;
  void *stream = nullptr; // out
};

struct OrdinalToGet {
  size_t size = sizeof(OrdinalToGet);
  Extension *extensions = nullptr;
  Context *context = nullptr;
  int32_t ordinal = 0; // out
};

struct Api {
  size_t size;
  Extension *extensions;
  Version version;
  const void *internal;
  Failure *(*makeFailure)(FailureToMake *);
  const void *readFailure, *destroyFailure, *registerFunction;
  Failure *(*getStream)(StreamToGet *);
  const void *registerType, *getContext, *setState, *getState, *allocate, *free,
      *schedule, *countThreads, *makeFuture, *setAvailable, *setFailed, *getRun;
  Failure *(*getOrdinal)(OrdinalToGet *);
};

struct Buffer {
  size_t size;
  Extension *extensions;
  int32_t type;
  void *data;
  int64_t rank;
  int64_t *extents;
};

/// Arguments and results.
struct Values {
  static constexpr int32_t buffer = 1;
  size_t size;
  Extension *extensions;
  int64_t count;
  int32_t *types;
  void **values;
};

struct Name {
  const char *text;
  size_t length;
};

struct Scalar {
  int32_t type;
  void *value;
};

struct Attributes {
  static constexpr int32_t scalar = 3;
  size_t size;
  Extension *extensions;
  int64_t count;
  int32_t *types;
  Name **names;
  void **values;
};

struct Frame {
  size_t size;
  Extension *extensions;
  const Api *api;
  Context *context;
  int32_t stage;
  Values arguments, results;
  Attributes attributes;
};

} // namespace costate::python::xla
