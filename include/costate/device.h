#pragma once
/// Devices: where arrays live and kernels run.

#include "costate/composite_array.h"
#include "costate/detail/shared.h"
#include "costate/graph.h"
#include "costate/statistics.h"

#include <functional>
#include <optional>
#include <string>

namespace costate {

namespace runtime {
class Device;
}

struct DeviceOptions {
  /// Threads that run kernels; may exceed the number of cores. 0: the
  /// environment variable COSTATE_THREADS, or one per core.
  int threads = 0;
  /// Bytes that arrays and tapes of this device may take together. 0: the
  /// environment variable COSTATE_MEMORY_LIMIT (bytes, with suffix k, m or g),
  /// or what the machine and its control groups allow, less a reserve.
  size_t memory_limit = 0;
  /// On a GPU: checks that whatever the runtime asks of the driver stays within
  /// memory that is allocated, and reports what is never released; for the
  /// search for defects of Costate itself. The environment variable
  /// COSTATE_VALIDATE=1 switches it on for all devices.
  bool validate = false;
  /// Bytes that the tapes of a launch may take together, on a GPU besides its
  /// on-chip memory, which they take first. What does not fit is computed
  /// again, so that a small budget costs time. None: the environment variable
  /// COSTATE_TAPE_BUDGET (bytes, as above), or half of the limit for tapes in
  /// tiles; then, by Vulkan on GPUs of NVIDIA, gradients have none that CUDA
  /// keeps on the chip. Other tapes have with none, or 0, what memory there is.
  std::optional<size_t> tape_budget = std::nullopt;
};

struct ArrayOptions {
  /// Directions of the tangents of an array with `dual`, 1 to 16: `jvp` then
  /// takes as many derivatives at once, and the shape of `dual()` is that of
  /// the array after an outermost extent for them. 0: one direction, and
  /// `dual()` has the shape of the array.
  int directions = 0;
  /// Of vectors, matrices and structs.
  Layout layout = AoS;
  /// Kernels that write it do so before they read it: then it does not matter
  /// to CustomLaunch::finds_arrays what it held before.
  bool scratch = false;
};

/// A handle to one device; copies mean the same device. Safe to use from
/// several threads. Using one that has been moved from is Error(BadArgument).
class Device {
public:
  /// The CPU, the same device at every call. The
  /// environment variable COSTATE_DEVICE names another one. Error(NoDevice) if
  /// that does not exist.
  static Device best();
  /// A device with its own limits. `name`: `cpu`, `cuda` (the first NVIDIA
  /// GPU), `hip` or `amd` (the first AMD GPU), `vulkan` (`vulkan:1`,
  /// `vulkan:part of a name`), `metal`, `gpu` (that of `cuda`, else of `hip`,
  /// or else of `vulkan` if it is no driver for the CPU) or `simt` (GPU code on
  /// the host). Error(NoDevice) for any other name; the text says what
  /// exists.
  static Device open(const std::string &name, DeviceOptions options = {});

  explicit Device(std::shared_ptr<runtime::Device> device)
      : handle(std::move(device)) {}

  /// A new array, all elements zero, its adjoint and tangent likewise.
  /// Error(BadArgument) for a negative extent, a rank above 8 (of `dual()` as
  /// well), more bytes than an address can count, a gradient of an array that
  /// is not floating point, or directions without `dual`. Error(OutOfMemory) if
  /// it does not fit.
  template <Element T>
  Array<T> array(const Extents &extents, Flags flags = none,
                 ArrayOptions options = {}) const {
    return Array<T>(array(dtypeOf<T>, extents, flags, options));
  }
  AnyArray array(DType dtype, const Extents &extents, Flags flags = none,
                 ArrayOptions options = {}) const;
  /// The same with elements of type C, a vector, matrix or struct. Of a struct
  /// with members of several types those of float types have the flags.
  template <class C>
    requires detail::Composite<C>
  Array<C> array(const Extents &extents, Flags flags = none,
                 ArrayOptions options = {}) const {
    if constexpr (detail::Mixed<C>)
      return Array<C>::make(*this, extents, flags, options);
    else
      return Array<C>(array(dtypeOf<detail::NumberOf<C>>, extents, flags,
                            options, detail::formOf<C>(options.layout)));
  }
  AnyArray array(DType dtype, const Extents &extents, Flags flags,
                 ArrayOptions options, const ElementForm &form) const;

  /// An array over memory of somebody else, which is used as it is and not
  /// copied; it holds `shape` elements of `dtype`, row-major and contiguous.
  /// `gradient` is such memory for its adjoint, of the dtype that grad() has;
  /// with the flag `grad` and none of that the adjoint is a new array.
  /// Error(BadArgument) as for array(), and for an address that is not aligned.
  AnyArray adopt(DType dtype, const Extents &extents, OutsideMemory memory,
                 Flags flags = none, OutsideMemory gradient = {}) const;

  /// Waits until all launches on this device are done.
  void synchronize() const;

  /// From here on the device queues its work on `stream`, a CUstream or
  /// cudaStream_t of the caller (null: CUDA's default stream): after what the
  /// caller has queued there, and after what the device was asked to do
  /// before. Holds for all threads. The stream must live until the device goes
  /// back to its own one. Costs nothing if it is the stream already, else an
  /// event. Error(BadArgument) on devices other than `cuda` and `hip`, whose
  /// streams are those of HIP.
  ///
  /// While somebody captures the stream, launches, and copies and fills of
  /// arrays on the device, become a part of that graph, which keeps the scratch
  /// memory that they need, but not the arrays; everything else is
  /// Error(CannotCapture). What the graph writes counts as written by others.
  void use_stream(void *stream) const;
  void use_own_stream() const;

  /// Runs `body`, and keeps what it launches on this device (kernels, their
  /// gradients and tangents) and what it fills, instead of doing it:
  ///
  /// ```cpp
  /// Graph step = device.capture([&] { k(x, y); k.grad(x, y); });
  /// for (int i = 0; i < 1000; ++i)
  ///   step.replay();
  /// ```
  ///
  /// Host code of the body runs once, here. Error(CannotCapture) for what a
  /// replay cannot repeat: copies from and to the host, gradients from the
  /// initial state and of a `Tape`, `synchronize`; on a GPU also for kernels
  /// that wait for a value of the device, such as the extent of a range. A
  /// gradient that reads back what its kernel stored needs the launch of the
  /// kernel in the same graph. Other threads go on meanwhile.
  Graph capture(const std::function<void()> &body) const;

  std::string name() const;
  int threads() const;

  /// Bytes of arrays and tapes: now, at most since the device was opened or
  /// reset_peak_bytes was called, and at most allowed.
  size_t current_bytes() const;
  size_t peak_bytes() const;
  size_t memory_limit() const;
  /// Bytes that the shared arrays of a block may take; 0: it has no blocks.
  size_t shared_memory() const;
  void reset_peak_bytes() const;

  /// What the device has done since it was opened or reset_statistics was
  /// called.
  Statistics statistics() const;
  void reset_statistics() const;

  bool operator==(const Device &other) const { return handle == other.handle; }
  const std::shared_ptr<runtime::Device> &shared() const {
    return handle.get();
  }

private:
  static constexpr char empty[] =
      "this Device has been moved from; use the one that it was moved to, or "
      "assign another";
  detail::Shared<runtime::Device, empty> handle;
};

} // namespace costate
