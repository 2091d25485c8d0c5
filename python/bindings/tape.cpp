#include "bindings/Bindings.h"

#include <nanobind/make_iterator.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <sstream>
#include <utility>

namespace costate::python {

using nb::literals::operator""_a;

namespace {
/// Records between __enter__ and __exit__.
struct Recording {
  Tape tape;
  std::optional<Tape::Recording> running;
};
} // namespace

using Progress = std::function<void(size_t, size_t)>;

namespace {
/// Calls a function at most once in so many seconds, and at the end.
struct Seldom {
  using Clock = std::chrono::steady_clock;

  void operator()(size_t done, size_t all) {
    Clock::time_point now = Clock::now();
    if (done != all && now - last < std::chrono::duration<double>(interval))
      return;
    last = now;
    function(done, all);
  }

  Progress function;
  double interval = 0;
  Clock::time_point last = {};
};
} // namespace

static void backward(Tape &tape, const std::optional<AnyArray> &loss,
                     bool clearInputs, bool clearWritten, bool allOrNothing,
                     const std::optional<Progress> &progress, double interval) {
  BackwardOptions options{clearInputs, clearWritten, allOrNothing,
                          progress ? Seldom{*progress, interval} : Progress()};
  GilRelease release;
  if (loss)
    tape.backward(*loss, options);
  else
    tape.backward(options);
}

static std::string text(const TapeReport &report) {
  std::ostringstream out;
  out << report;
  return out.str();
}

static void bindReport(nb::module_ &module) {
  nb::class_<TapeReport> report(module, "TapeReport",
                                "What a recording holds.");
  report.def_ro("entries", &TapeReport::entries)
      .def_ro("copies", &TapeReport::copies)
      .def_ro("bytes", &TapeReport::bytes, "of all copies")
      .def_ro("peak_bytes", &TapeReport::peak_bytes)
      .def_ro("steps", &TapeReport::steps, "recorded, or told")
      .def_ro("snapshots", &TapeReport::snapshots, "at most; 0: none are taken")
      .def_ro("snapshots_taken", &TapeReport::snapshots_taken)
      .def_ro("snapshot_bytes", &TapeReport::snapshot_bytes, "of the largest")
      .def_ro("budget", &TapeReport::budget)
      .def_ro("steps_again", &TapeReport::steps_again,
              "that `backward` runs again")
      .def_ro("kept", &TapeReport::kept, "what cannot run again")
      .def("__str__", &text)
      .def("__repr__", &text);
  nb::class_<TapeReport::Copy>(report, "Copy")
      .def_ro("array", &TapeReport::Copy::array)
      .def_ro("needed_by", &TapeReport::Copy::needed_by)
      .def_ro("overwritten_by", &TapeReport::Copy::overwritten_by)
      .def_ro("bytes", &TapeReport::Copy::bytes);
  nb::class_<TapeReport::Kept>(report, "Kept")
      .def_ro("entry", &TapeReport::Kept::entry)
      .def_ro("why", &TapeReport::Kept::why)
      .def_ro("bytes", &TapeReport::Kept::bytes);
}

static void bindSteps(nb::module_ &module) {
  nb::class_<Tape::Steps>(module, "TapeSteps",
                          "The numbers of steps; each one begins a step.")
      .def("__len__", &Tape::Steps::size)
      .def(
          "__iter__",
          [](const Tape::Steps &steps) {
            return nb::make_iterator(nb::type<Tape::Steps>(), "iterator",
                                     steps.begin(), steps.end());
          },
          nb::keep_alive<0, 1>());
}

// Its functions are objects of Python, which may refer to it.
static int visitFunctions(PyObject *self, visitproc visit, void *arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self))
    return 0;
  const CustomLaunch &launch = *nb::inst_ptr<CustomLaunch>(self);
  for (const auto *body : {&launch.primal, &launch.gradient, &launch.tangent})
    if (nb::object function = nb::find(*body); !function.is_none())
      Py_VISIT(function.ptr());
  return 0;
}

static int dropFunctions(PyObject *self) noexcept {
  CustomLaunch &launch = *nb::inst_ptr<CustomLaunch>(self);
  for (auto *body : {&launch.primal, &launch.gradient, &launch.tangent})
    std::exchange(*body, nullptr);
  return 0;
}

static PyType_Slot customLaunchSlots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(visitFunctions)},
    {Py_tp_clear, reinterpret_cast<void *>(dropFunctions)},
    {0, nullptr}};

static void bindCustomLaunch(nb::module_ &module) {
  using Arrays = std::vector<AnyArray>;
  using Body = std::optional<std::function<void()>>;
  nb::class_<CustomLaunch>(
      module, "CustomLaunch", nb::type_slots(customLaunchSlots),
      "A piece of a program that brings its own derivative: under a `Tape` "
      "`primal` is one entry, and `gradient` runs in its place in "
      "`backward`.")
      .def(
          "__init__",
          [](CustomLaunch *self, const std::string &name, const Arrays &reads,
             const Arrays &writes, const Arrays &unneeded, bool findsArrays,
             bool repeatable, const Body &primal, const Body &gradient,
             const Body &tangent) {
            std::function<void()> none;
            new (self) CustomLaunch{.name = name,
                                    .reads = reads,
                                    .writes = writes,
                                    .unneeded = unneeded,
                                    .finds_arrays = findsArrays,
                                    .repeatable = repeatable,
                                    .primal = primal.value_or(none),
                                    .gradient = gradient.value_or(none),
                                    .tangent = tangent.value_or(none),
                                    .loc = callerLoc()};
          },
          nb::kw_only(), "name"_a, "reads"_a = Arrays(), "writes"_a = Arrays(),
          "unneeded"_a = Arrays(), "finds_arrays"_a = false,
          "repeatable"_a = false, "primal"_a, "gradient"_a = nb::none(),
          "tangent"_a = nb::none(),
          "`reads`, `writes`: all arrays that `primal` uses; `unneeded`: those "
          "whose values `gradient` does not look at. With `finds_arrays` "
          "they are what `primal` uses, and `gradient` finds what it left. "
          "`repeatable`: it may run again, for a `Tape` with snapshots.")
      .def("__call__", &CustomLaunch::operator(), "Runs `primal`.")
      .def("grad", &CustomLaunch::grad,
           "Runs `gradient`. NotDifferentiable if there is none.")
      .def("jvp", &CustomLaunch::jvp,
           "Runs `tangent`. NotDifferentiable if there is none.");
}

static void bindRecording(nb::module_ &module) {
  nb::class_<Recording>(module, "Recording",
                        "`with tape.record(): ...` records while it lasts.")
      .def("__enter__",
           [](Recording &recording) {
             recording.running.emplace(recording.tape.record());
           })
      .def("__exit__", [](Recording &recording, nb::args) {
        recording.running.reset();
        return false;
      });
}

void bindTape(nb::module_ &module) {
  bindReport(module);
  bindSteps(module);
  bindCustomLaunch(module);
  bindRecording(module);
  nb::class_<Tape>(module, "Tape",
                   "Records the launches and host writes of one thread, and "
                   "reverses them. What a gradient needs and something "
                   "overwrites is copied, and nothing else.")
      .def(
          "__init__",
          [](Tape *self, bool snapshot, size_t snapshots, size_t budget,
             bool onHost, const std::string &folder) {
            new (self)
                Tape(TapeOptions{snapshot, snapshots, budget, onHost, folder});
          },
          nb::kw_only(), "snapshot"_a = true, "snapshots"_a = 0, "budget"_a = 0,
          "on_host"_a = false, "folder"_a = "",
          "With `snapshots` (a number) or a `budget` (in bytes) little is "
          "copied, and `backward` runs launches again. `on_host`: snapshots "
          "of a GPU are in memory of the host; `folder`: they are in files.")
      .def("step", &Tape::step, "What follows, up to the next mark, is a step.")
      .def("steps", &Tape::steps, "count"_a, nb::keep_alive<0, 1>(),
           "Tells that so many steps follow; `for t in tape.steps(n):` marks "
           "them.")
      .def("range", &Tape::range, "count"_a, nb::keep_alive<0, 1>(),
           "The same.")
      .def(
          "record", [](Tape &tape) { return Recording{tape, {}}; },
          "A context manager. BadArgument if this thread is recording "
          "already.")
      .def("backward", &backward, "loss"_a = nb::none(), nb::kw_only(),
           "clear_inputs"_a = false, "clear_written"_a = true,
           "all_or_nothing"_a = false, "progress"_a = nb::none(),
           "interval"_a = 0.0,
           "Sets `loss.grad` to 1, clears the gradients of all other arrays "
           "that the recording wrote, and reverses the recording: adds to the "
           "gradients of its inputs. Without `loss`: from the gradients as "
           "they are. `progress` is called with the number of steps that are "
           "reversed, and of all, at most once in `interval` seconds. "
           "BadArgument, MissingGradient, "
           "NotDifferentiable, "
           "CannotReplay.")
      .def(
          "never_copy",
          [](Tape &tape, const AnyArray &array) { tape.never_copy(array); },
          "array"_a)
      .def("clear", &Tape::clear, "Forgets everything, copies included.")
      .def("__len__", &Tape::size, "Recorded launches and host writes.")
      .def("computes", &Tape::computes, "array"_a,
           "Whether a recorded launch writes `array`.")
      .def("report", &Tape::report);
}

} // namespace costate::python
