#include "bindings/Bindings.h"

#include "bindings/XlaFfi.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string_view>

namespace costate::python {

using nb::literals::operator""_a;

/// What runs a call: a function of Python. Never freed: calls may come late.
static PyObject *runner;

[[noreturn]] static void refuse(const std::string &text) {
  throw Error(ErrorCode::BadArgument, text);
}

static DType typeOf(int32_t code) {
  constexpr DType integers[] = {DType::I8,  DType::I16, DType::I32, DType::I64,
                                DType::U8,  DType::U16, DType::U32, DType::U64,
                                DType::F16, DType::F32, DType::F64};
  constexpr int32_t truth = 1, first = 2, last = 12;
  if (code == truth)
    return DType::Bool;
  if (code < first || code > last)
    refuse("an array of JAX has elements that kernels do not have; convert it "
           "with `x.astype(...)`");
  return integers[code - first];
}

static nb::list buffersOf(const xla::Values &values) {
  nb::list buffers;
  for (int64_t i = 0; i < values.count; ++i) {
    if (values.types[i] != xla::Values::buffer)
      refuse("XLA has passed something else than arrays");
    const auto &buffer = *static_cast<const xla::Buffer *>(values.values[i]);
    buffers.append(nb::make_tuple(
        typeOf(buffer.type),
        std::vector<int64_t>(buffer.extents, buffer.extents + buffer.rank),
        reinterpret_cast<uintptr_t>(buffer.data)));
  }
  return buffers;
}

/// The attribute `call`.
static int64_t numberOfCall(const xla::Attributes &attributes) {
  for (int64_t i = 0; i < attributes.count; ++i) {
    const xla::Name &name = *attributes.names[i];
    if (std::string_view(name.text, name.length) == "call" &&
        attributes.types[i] == xla::Attributes::scalar)
      return *static_cast<const int64_t *>(
          static_cast<const xla::Scalar *>(attributes.values[i])->value);
  }
  refuse("a call of XLA does not say which function it calls");
}

static void checkSizes(const xla::Frame &frame) {
  if (frame.size < sizeof(xla::Frame) || frame.api->size < sizeof(xla::Api) ||
      frame.arguments.size < sizeof(xla::Values) ||
      frame.attributes.size < sizeof(xla::Attributes))
    refuse("this JAX has an older interface for functions of others; use JAX "
           "0.10 or later");
}

/// XLA's stream; none on the CPU.
static std::optional<uintptr_t> streamOf(const xla::Frame &frame, bool isGpu) {
  if (!isGpu)
    return std::nullopt;
  xla::OrdinalToGet place;
  place.context = frame.context;
  frame.api->getOrdinal(&place);
  if (place.ordinal != 0)
    refuse("arrays of JAX are on GPU " + std::to_string(place.ordinal) +
           ", and Costate uses the first one; move them with "
           "`jax.device_put(x, jax.devices()[0])`");
  xla::StreamToGet stream;
  stream.context = frame.context;
  frame.api->getStream(&stream);
  return reinterpret_cast<uintptr_t>(stream.stream);
}

static bool tellMetadata(const xla::Frame &frame) {
  if (!frame.extensions ||
      frame.extensions->type != xla::MetadataExtension::type)
    return false;
  constexpr int32_t major = 0, minor = 3;
  xla::Metadata &metadata =
      *reinterpret_cast<xla::MetadataExtension *>(frame.extensions)->metadata;
  bool known = frame.api && frame.api->version.major == major;
  metadata.version.major = major;
  metadata.version.minor = known ? frame.api->version.minor : minor;
  metadata.traits = 0;
  return true;
}

/// The text of what was thrown, as Python shows it.
static std::string textOf(const std::exception_ptr &thrown) {
  setError(thrown);
  nb::python_error error;
  return std::string(nb::type_name(error.type()).c_str()) + ": " +
         nb::str(error.value()).c_str();
}

static xla::Failure *run(xla::Frame *frame, bool isGpu) {
  if (tellMetadata(*frame))
    return nullptr;
  if (!Py_IsInitialized())
    return nullptr;
  GilAcquire acquire;
  std::string text;
  try {
    checkSizes(*frame);
    nb::handle callee = runner;
    callee(numberOfCall(frame->attributes), streamOf(*frame, isGpu),
           buffersOf(frame->arguments), buffersOf(frame->results));
    return nullptr;
  } catch (...) {
    text = textOf(std::current_exception());
  }
  xla::FailureToMake failure;
  failure.message = text.c_str();
  return frame->api->makeFailure(&failure);
}

static xla::Failure *runOnCpu(xla::Frame *frame) { return run(frame, false); }
static xla::Failure *runOnGpu(xla::Frame *frame) { return run(frame, true); }

void bindXla(nb::module_ &module) {
  module.def(
      "_xla_handlers",
      [](nb::callable run) {
        Py_XDECREF(runner);
        runner = run.release().ptr();
        return nb::make_tuple(nb::capsule(reinterpret_cast<void *>(&runOnCpu)),
                              nb::capsule(reinterpret_cast<void *>(&runOnGpu)));
      },
      "run"_a,
      "What XLA calls on the CPU and on CUDA, which calls `run(number, stream, "
      "arguments, results)`. Arrays are (dtype, shape, address).");
}

} // namespace costate::python
