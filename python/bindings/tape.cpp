#include "bindings/Bindings.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

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

static void backward(Tape &tape, const std::optional<AnyArray> &loss,
                     bool clearInputs, bool clearWritten, bool allOrNothing) {
  BackwardOptions options{clearInputs, clearWritten, allOrNothing};
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
      .def("__str__", &text);
  nb::class_<TapeReport::Copy>(report, "Copy")
      .def_ro("array", &TapeReport::Copy::array)
      .def_ro("needed_by", &TapeReport::Copy::needed_by)
      .def_ro("overwritten_by", &TapeReport::Copy::overwritten_by)
      .def_ro("bytes", &TapeReport::Copy::bytes);
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
             const Body &primal, const Body &gradient, const Body &tangent) {
            std::function<void()> none;
            new (self) CustomLaunch{.name = name,
                                    .reads = reads,
                                    .writes = writes,
                                    .unneeded = unneeded,
                                    .finds_arrays = findsArrays,
                                    .primal = primal.value_or(none),
                                    .gradient = gradient.value_or(none),
                                    .tangent = tangent.value_or(none),
                                    .loc = callerLoc()};
          },
          nb::kw_only(), "name"_a, "reads"_a = Arrays(), "writes"_a = Arrays(),
          "unneeded"_a = Arrays(), "finds_arrays"_a = false, "primal"_a,
          "gradient"_a = nb::none(), "tangent"_a = nb::none(),
          "`reads`, `writes`: all arrays that `primal` uses; `unneeded`: those "
          "whose values `gradient` does not look at. With `finds_arrays` "
          "they are what `primal` uses, and `gradient` finds what it left.")
      .def("__call__", &CustomLaunch::operator(), "Runs `primal`.")
      .def("grad", &CustomLaunch::grad,
           "Runs `gradient`. NotDifferentiable if there is none.")
      .def("jvp", &CustomLaunch::jvp,
           "Runs `tangent`. NotDifferentiable if there is none.");
}

void bindTape(nb::module_ &module) {
  bindReport(module);
  bindCustomLaunch(module);
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
  nb::class_<Tape>(module, "Tape",
                   "Records the launches and host writes of one thread, and "
                   "reverses them. What a gradient needs and something "
                   "overwrites is copied, and nothing else.")
      .def(
          "__init__",
          [](Tape *self, bool snapshot) {
            new (self) Tape(TapeOptions{snapshot});
          },
          nb::kw_only(), "snapshot"_a = true)
      .def(
          "record", [](Tape &tape) { return Recording{tape, {}}; },
          "A context manager. BadArgument if this thread is recording "
          "already.")
      .def("backward", &backward, "loss"_a = nb::none(), nb::kw_only(),
           "clear_inputs"_a = false, "clear_written"_a = true,
           "all_or_nothing"_a = false,
           "Sets `loss.grad` to 1, clears the gradients of all other arrays "
           "that the recording wrote, and reverses the recording: adds to the "
           "gradients of its inputs. Without `loss`: from the gradients as "
           "they are. BadArgument, MissingGradient, NotDifferentiable, "
           "CannotReplay.")
      .def(
          "never_copy",
          [](Tape &tape, const AnyArray &array) { tape.never_copy(array); },
          "array"_a)
      .def("clear", &Tape::clear, "Forgets everything, copies included.")
      .def("__len__", &Tape::size, "Recorded launches and host writes.")
      .def("report", &Tape::report);
}

} // namespace costate::python
