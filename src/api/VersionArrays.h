#pragma once
/// What arrays held before parts of a recorded launch, or after it.

#include "api/Call.h"
#include "runtime/CopyMemory.h"

namespace costate::detail {

/// The version parameters of the code of a launch, and others for which memory
/// stands in.
class VersionArrays {
public:
  VersionArrays() = default;
  /// Room in `memory` for all that `code` asks for. Throws OutOfMemory.
  VersionArrays(const Call &call, const runtime::KernelCode &code,
                const std::shared_ptr<runtime::CopyMemory> &memory);
  /// The arrays themselves stand in for all that `code` asks for.
  static VersionArrays ofMemory(const Call &call,
                                const runtime::KernelCode &code);
  /// The bytes that this takes.
  static size_t bytesOf(const Call &call, const runtime::KernelCode &code);

  /// `buffer`, which somebody else keeps, stands in for `parameter`.
  void put(runtime::Parameter parameter, runtime::Buffer buffer);
  /// Room in `memory` for one more. Throws OutOfMemory.
  runtime::Buffer add(const Call &call, runtime::Parameter parameter,
                      const std::shared_ptr<runtime::CopyMemory> &memory);

  /// Without address if there is none.
  runtime::Buffer find(const runtime::Parameter &parameter) const;
  size_t bytes() const; ///< of copies of versions

  struct Version {
    runtime::Parameter parameter;
    runtime::Buffer buffer;
  };
  const std::vector<Version> &all() const { return arrays; }

private:
  std::shared_ptr<runtime::CopyMemory> memory;
  std::vector<Version> arrays;
  bool areCopies = true;
};

/// The array that `parameter` stands for, or whose versions or scratch memory
/// it stands for; null for a scalar.
runtime::ArrayStorage *arrayOf(const Call &call,
                               const runtime::Parameter &parameter);

} // namespace costate::detail
