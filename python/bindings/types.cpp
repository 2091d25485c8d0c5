#include "bindings/Bindings.h"

#include "costate/detail/group.h"

#include <algorithm>
#include <frameobject.h>
#include <mutex>
#include <nanobind/stl/string.h>
#include <unordered_set>

namespace costate::python {

using nb::literals::operator""_a;
using detail::GroupOp;
using detail::Op;

const char *interned(std::string_view text) {
  static auto &all = *new std::unordered_set<std::string>;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  return all.emplace(text).first->c_str();
}

/// Of this package; set when it is imported.
static std::string packageFolder;

static bool isOurs(std::string_view file) {
  return !packageFolder.empty() && file.starts_with(packageFolder);
}

Loc callerLoc() {
  nb::object held = nb::borrow(reinterpret_cast<PyObject *>(PyEval_GetFrame()));
  while (held.is_valid() && !held.is_none()) {
    auto *frame = reinterpret_cast<PyFrameObject *>(held.ptr());
    nb::object code =
        nb::steal(reinterpret_cast<PyObject *>(PyFrame_GetCode(frame)));
    nb::object name = code.attr("co_filename");
    const char *file = PyUnicode_AsUTF8AndSize(name.ptr(), nullptr);
    if (file && !isOurs(file))
      return {interned(file),
              static_cast<uint32_t>(PyFrame_GetLineNumber(frame)), 0};
    PyErr_Clear();
    held = held.attr("f_back");
  }
  return {};
}

static void bindDType(nb::module_ &module) {
  nb::enum_<DType>(module, "DType", "The type of an array element or scalar.")
      .value("bool", DType::Bool, "one byte, 0 or 1")
      .value("i8", DType::I8)
      .value("i16", DType::I16)
      .value("i32", DType::I32)
      .value("i64", DType::I64)
      .value("u8", DType::U8)
      .value("u16", DType::U16)
      .value("u32", DType::U32)
      .value("u64", DType::U64)
      .value("f16", DType::F16)
      .value("f32", DType::F32)
      .value("f64", DType::F64)
      .def_prop_ro("itemsize", &sizeOf, "Bytes of one element in memory.")
      .def_prop_ro("is_float", &isFloat)
      .def_prop_ro("is_integer", &isInteger, "Not so of bool.")
      .def_prop_ro("is_unsigned", &isUnsigned)
      .def_prop_ro("derivative", &derivativeOf,
                   "Of its adjoints and tangents: f32 of f16.");
}

/// `and_`: some names are words of Python.
static std::string pythonName(std::string name) {
  bool isWord = name == "and" || name == "or" || name == "not";
  return isWord ? name + "_" : name;
}

static void bindOp(nb::module_ &module) {
  nb::enum_<Op> all(module, "Op",
                    "The pure operations of the kernel language.");
#define COSTATE_OPERATION(Name, name, operands, form, doc)                     \
  all.value(pythonName(#name).c_str(), Op::Name, *doc ? doc : nullptr);
#include "costate/detail/operations.def"
}

static void bindGroupOp(nb::module_ &module) {
  nb::enum_<GroupOp> all(module, "GroupOp",
                         "What work items of a block do together.");
  for (auto [name, op] : {
#define COSTATE_GROUP(Name, name, operands, result)                            \
  std::pair{name, GroupOp::Name},
#include "costate/detail/group_operations.def"
       }) {
    std::string text = name;
    std::ranges::replace(text, '.', '_');
    all.value(text.c_str(), op);
  }
}

static nb::list functions() {
  nb::list all;
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, library, domain,      \
                         range, doc)                                           \
  all.append(nb::make_tuple(Op::Name, operands, doc));
#include "costate/detail/operations.def"
  return all;
}

static std::string text(const Loc &loc) {
  return std::string(loc.file) + ":" + std::to_string(loc.line);
}

static void bindLoc(nb::module_ &module) {
  nb::class_<Loc>(module, "Loc", "A place in the user's source.")
      .def(
          "__init__",
          [](Loc *self, std::string file, uint32_t line, uint32_t column) {
            new (self) Loc(interned(file), line, column);
          },
          "file"_a, "line"_a, "column"_a = 0)
      .def_static("caller", &callerLoc,
                  "Of the code that has called this package.")
      .def_prop_ro("file", [](const Loc &loc) { return loc.file; })
      .def_ro("line", &Loc::line)
      .def_ro("column", &Loc::column)
      .def("__str__", &text)
      .def("__repr__", [](const Loc &loc) { return "Loc(" + text(loc) + ")"; });
  module.def(
      "_set_package_folder", [](std::string folder) { packageFolder = folder; },
      "folder"_a);
}

void bindTypes(nb::module_ &module) {
  bindDType(module);
  bindOp(module);
  bindGroupOp(module);
  module.def("functions", &functions,
             "Those of floats: operation, number of operands, docstring.");
  bindLoc(module);
  nb::enum_<Layout>(module, "Layout",
                    "Where an array of vectors, matrices or structs keeps "
                    "their numbers.")
      .value("aos", AoS, "those of one element side by side")
      .value("soa", SoA, "those of one component side by side");
  nb::class_<ElementForm>(module, "ElementForm",
                          "What the elements of an array are made of.")
      .def(
          "__init__",
          [](ElementForm *self, std::string name, int64_t count,
             Layout layout) {
            new (self) ElementForm{std::move(name), count, layout};
          },
          "name"_a, "count"_a, "layout"_a = AoS)
      .def_ro("name", &ElementForm::name, "`Vec<f64, 3>`")
      .def_ro("count", &ElementForm::count,
              "numbers in an element; 0: the element is a number")
      .def_ro("layout", &ElementForm::layout);
}

} // namespace costate::python
