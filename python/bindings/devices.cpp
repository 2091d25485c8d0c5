#include "bindings/Bindings.h"

#include "costate/cache.h"
#include "costate/detail/default_device.h"
#include "costate/dlpack.h"
#include "costate/profile.h"

#include <nanobind/operators.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace costate::python {

using nb::literals::operator""_a;
using Release = nb::call_guard<GilRelease>;

static Device open(const std::string &name, int threads, size_t memoryLimit,
                   bool validate, std::optional<size_t> tapeBudget) {
  return Device::open(name, {threads, memoryLimit, validate, tapeBudget});
}

static void bindStatistics(nb::module_ &module) {
  nb::class_<Statistics>(module, "Statistics", "What a device has done.")
      .def_ro("launches", &Statistics::launches)
      .def_ro("primal_launches", &Statistics::primal_launches,
              "of kernels, and not of their gradients")
      .def_ro("uploads", &Statistics::uploads, "copies from the host")
      .def_ro("downloads", &Statistics::downloads, "copies to the host")
      .def_ro("copies", &Statistics::copies, "from array to array")
      .def_ro("fills", &Statistics::fills, "also of new arrays, with zeros")
      .def_ro("synchronizations", &Statistics::synchronizations,
              "times that the host has waited for a GPU")
      .def(nb::self == nb::self)
      .def("__repr__", [](const Statistics &seen) {
        return std::to_string(seen.launches) + " launches, " +
               std::to_string(seen.uploads) + " uploads, " +
               std::to_string(seen.downloads) + " downloads, " +
               std::to_string(seen.copies) + " copies, " +
               std::to_string(seen.fills) + " fills, " +
               std::to_string(seen.synchronizations) + " synchronizations";
      });
}

static void bindGraph(nb::module_ &module) {
  nb::class_<Graph>(module, "Graph",
                    "What `Device.capture` has kept. Arrays and kernels stay "
                    "alive as long as it does.")
      .def("replay", &Graph::replay, Release(),
           "Launches everything once more, in order, after what the device "
           "has been asked to do so far.")
      .def("__len__", &Graph::size);
}

static std::string cacheText(const CacheStatistics &seen) {
  if (seen.folder.empty())
    return "no cache is used";
  return std::to_string(seen.loaded) + " loaded, " +
         std::to_string(seen.compiled) + " compiled; " +
         std::to_string(seen.bytes) + " bytes in " + seen.folder +
         (seen.problem.empty() ? "" : "; not all is kept: " + seen.problem);
}

/// What Python wants to be told; lives as long as the process.
static PyObject *compilationWatch;

static void tellWatch(const std::string &kernel, bool begins) {
  if (!Py_IsInitialized() || pythonEnds())
    return;
  GilAcquire acquire;
  PyObject *done = PyObject_CallFunction(compilationWatch, "sO", kernel.c_str(),
                                         begins ? Py_True : Py_False);
  if (!done)
    PyErr_WriteUnraisable(compilationWatch);
  Py_XDECREF(done);
}

static void bindCache(nb::module_ &module) {
  nb::class_<CacheStatistics>(module, "CacheStatistics",
                              "What has come of the cache in this process.")
      .def_ro("compiled", &CacheStatistics::compiled,
              "modes of kernels that it did not have")
      .def_ro("loaded", &CacheStatistics::loaded, "and those that it had")
      .def_ro("folder", &CacheStatistics::folder, "empty: no cache is used")
      .def_ro("problem", &CacheStatistics::problem,
              "why some code could not be kept; empty: all could")
      .def_ro("bytes", &CacheStatistics::bytes,
              "of all that is kept there, by any process")
      .def("__repr__", &cacheText);
  module.def(
      "use_cache",
      [](bool enabled, const std::string &folder, uint64_t limit) {
        use_cache({enabled, folder, limit});
      },
      "enabled"_a = true, "folder"_a = "", "limit"_a = CacheOptions().limit,
      "Where compiled kernels are kept for other processes, for kernels that "
      "are made from here on: a folder (empty: `costate` in "
      "$XDG_CACHE_HOME or ~/.cache) of at most `limit` bytes. COSTATE_CACHE=0, "
      "COSTATE_CACHE_DIR and COSTATE_CACHE_SIZE count more.");
  module.def("set_default_device", &detail::setDefaultDevice, "device"_a.none(),
             Release(),
             "The device of launches that are given no array; None: the best");
  module.def("cache_statistics", &cache_statistics,
             "What the cache has done for this process.");
  module.def("clear_cache", &clear_cache, Release(),
             "Removes what the cache holds. Kernels that are loaded go on.");
  module.def(
      "_watch_compilation",
      [](nb::object watch) {
        compilationWatch = watch.release().ptr();
        watch_compilation(tellWatch);
      },
      "watch"_a,
      "From here on calls `watch(kernel, begins)` on the thread that "
      "compiles.");
}

static void bindProfile(nb::module_ &module) {
  nb::class_<ProfileEntry>(module, "ProfileEntry", "All times of one name.")
      .def_ro(
          "kind", &ProfileEntry::kind,
          "`launch`, `range`, `compile`, `copy`, `wait`, `work` or `device`")
      .def_ro("name", &ProfileEntry::name)
      .def_ro("source", &ProfileEntry::source, "file and line; empty: unknown")
      .def_ro("count", &ProfileEntry::count)
      .def_ro("seconds", &ProfileEntry::seconds, "of all of them")
      .def_ro("least", &ProfileEntry::least)
      .def_ro("most", &ProfileEntry::most);
  nb::class_<Profile>(module, "Profile",
                      "Times what all threads and devices do until `end`.")
      .def(nb::init<const std::string &>(), "file"_a = "", Release(),
           "Each time goes to `file` as well, as a trace event. BadFile.")
      .def("end", &Profile::end, Release(),
           "Nothing more is timed, and the file is complete. BadFile.")
      .def("entries", &Profile::entries, Release(),
           "So far, by kind and name, the longest first.")
      .def("report", &Profile::report, Release(), "The same as a table.");
  nb::class_<ProfileSpan>(module, "ProfileSpan",
                          "Work of the program, as long as this lives.")
      .def(nb::init<const std::string &>(), "name"_a);
}

static void bindMemory(nb::class_<Device> &device) {
  device
      .def_prop_ro("current_bytes", &Device::current_bytes,
                   "Bytes of arrays and tapes.")
      .def_prop_ro("peak_bytes", &Device::peak_bytes)
      .def_prop_ro("memory_limit", &Device::memory_limit)
      .def_prop_ro("shared_memory", &Device::shared_memory,
                   "Bytes that the `SharedArray`s of a block may take; 0: it "
                   "has no blocks.")
      .def("reset_peak_bytes", &Device::reset_peak_bytes);
}

void bindDevices(nb::module_ &module) {
  bindStatistics(module);
  bindProfile(module);
  bindGraph(module);
  bindCache(module);
  nb::class_<Device> device(
      module, "Device",
      "Where arrays live and kernels run. Safe to use from several threads.");
  bindMemory(device);
  device
      .def_static("best", &Device::best, Release(),
                  "The CPU, or the device that the environment variable "
                  "COSTATE_DEVICE names; the same at every call. NoDevice if "
                  "that does not exist.")
      .def_static(
          "open", &open, "name"_a, "threads"_a = 0, "memory_limit"_a = 0,
          "validate"_a = false, "tape_budget"_a = nb::none(), Release(),
          "A new device with its own memory limit (bytes) and threads. "
          "`name`: `cpu`, `cuda` (the first NVIDIA GPU), `vulkan` "
          "(`vulkan:1`, `vulkan:part of a name`), `gpu` (that of CUDA, else "
          "the fastest of Vulkan) or `simt` (the code of a GPU on the host). "
          "NoDevice for any other name.")
      .def_prop_ro("name", &Device::name)
      .def_prop_ro("threads", &Device::threads)
      .def("synchronize", &Device::synchronize, Release(),
           "Waits until all launches on this device are done. Raises what "
           "went wrong in them.")
      .def(
          "use_stream",
          [](const Device &device, uintptr_t stream) {
            device.use_stream(reinterpret_cast<void *>(stream));
          },
          "stream"_a, Release(),
          "From here on the device queues its work on a stream of the caller "
          "(a cudaStream_t as an integer). BadArgument on devices other than "
          "`cuda`.")
      .def("use_own_stream", &Device::use_own_stream, Release())
      .def("let_wait", &let_wait, "stream"_a.none(), Release(),
           "What others queue on `stream` from here on comes after all that "
           "the device was asked to do. `stream` is as consumers of DLPack "
           "pass it: 1 or None is CUDA's default stream, 2 that of the thread, "
           "-1 none, any other a handle. Other devices are waited for.")
      .def("capture", &Device::capture, "body"_a,
           "Runs `body`, and keeps what it launches and fills on this device "
           "instead of doing it: a `Graph`. CannotCapture for what a replay "
           "cannot repeat.")
      .def("statistics", &Device::statistics)
      .def("reset_statistics", &Device::reset_statistics)
      .def(nb::self == nb::self)
      .def("__hash__",
           [](const Device &device) {
             return std::hash<const void *>()(device.shared().get());
           })
      .def("__repr__", [](const Device &device) {
        return "<costate.Device " + device.name() + ">";
      });
}

} // namespace costate::python
