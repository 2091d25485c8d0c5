#include "api/GradientProbe.h"

#include "api/Checked.h"
#include "api/Launch.h"
#include "api/LaunchCode.h"

#include <algorithm>
#include <cmath>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;

template <class T> static Numbers downloadAs(const ArrayStorage &array) {
  std::vector<T> values(static_cast<size_t>(array.size));
  checked(array.device->download(values.data(), array.buffer));
  return Numbers(values.begin(), values.end());
}

static Numbers download(const ArrayStorage &array) {
  if (array.dtype == DType::F64)
    return downloadAs<double>(array);
  return array.dtype == DType::F16 ? downloadAs<f16>(array)
                                   : downloadAs<float>(array);
}

template <class T>
static void uploadAs(ArrayStorage &array, const Numbers &numbers) {
  std::vector<T> values(numbers.begin(), numbers.end());
  checked(array.device->upload(array.buffer, values.data()));
}

static void upload(ArrayStorage &array, const Numbers &values) {
  array.countWrite();
  if (array.dtype == DType::F64)
    uploadAs<double>(array, values);
  else if (array.dtype == DType::F16)
    uploadAs<f16>(array, values);
  else
    uploadAs<float>(array, values);
}

static double dot(const Numbers &a, const Numbers &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

double detail::dot(const Direction &a, const Direction &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += ::dot(a[i], b[i]);
  return sum;
}

GradientProbe::GradientProbe(const Call &call) : original(call), call(call) {
  KernelImpl *kernel = call.kernel.get();
  compiler::Derivation primal;
  const std::string text = checked(kernel->program->print(primal, false));
  single = text.find("f32") != std::string::npos;
  half = text.find("f16") != std::string::npos;
  copyArguments();
  primal.target = call.device->info().target;
  const runtime::KernelCode &code = *kernel->compiled(primal).code;
  for (size_t i = 0; i < this->call.arguments.size(); ++i) {
    const ArrayStorage *array = this->call.arguments[i].array.get();
    if (!array || !isFloat(array->dtype))
      continue;
    ProbeInput input{i, code.accesses[i].read, download(*array), {}};
    if (code.accesses[i].written)
      input.cotangent = gaussian(input.start.size());
    all.push_back(std::move(input));
  }
  if (all.empty())
    raise(ErrorCode::MissingGradient,
          kernel->title() +
              " takes no floating-point array: it has no gradient");
}

void GradientProbe::copyArguments() {
  for (BoundArgument &argument : call.arguments) {
    if (!argument.array)
      continue;
    const ArrayStorage &from = *argument.array;
    bool real = isFloat(from.dtype);
    argument.array = checked(
        runtime::makeArray(from.device, from.dtype, from.extents, real, real));
    checked(from.device->copy(argument.array->buffer, from.buffer));
  }
}

Numbers GradientProbe::gaussian(size_t count) {
  std::normal_distribution<double> normal;
  Numbers values(count);
  for (double &value : values)
    value = normal(random);
  return values;
}

double GradientProbe::size() const {
  double squares = 0, count = 0;
  for (const ProbeInput &input : all) {
    squares += ::dot(input.start, input.start);
    count += static_cast<double>(input.start.size());
  }
  return count > 0 ? std::sqrt(squares / count) : 0;
}

Direction GradientProbe::zero() const {
  Direction direction;
  for (const ProbeInput &input : all)
    direction.emplace_back(input.start.size());
  return direction;
}

Direction GradientProbe::randomUnit() {
  Direction direction = zero();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].read)
      direction[i] = gaussian(all[i].start.size());
  double norm = std::sqrt(dot(direction, direction));
  for (Numbers &values : direction)
    for (double &value : values)
      value /= norm > 0 ? norm : 1;
  return direction;
}

/// Puts the copies at the point plus `along` times the direction.
void GradientProbe::reset(const Direction &direction, double along) {
  for (size_t i = 0; i < call.arguments.size(); ++i)
    if (ArrayStorage *array = call.arguments[i].array.get()) {
      array->noteChange();
      checked(call.device->copy(array->buffer,
                                original.arguments[i].array->buffer));
    }
  for (size_t i = 0; i < all.size(); ++i) {
    Numbers values = all[i].start;
    if (along != 0)
      for (size_t k = 0; k < values.size(); ++k)
        values[k] += along * direction[i][k];
    upload(*call.arguments[all[i].argument].array, values);
  }
}

Numbers GradientProbe::outputs() {
  Numbers joined;
  for (const ProbeInput &input : all)
    if (!input.cotangent.empty()) {
      Numbers values = download(*call.arguments[input.argument].array);
      joined.insert(joined.end(), values.begin(), values.end());
    }
  return joined;
}

/// By hand, or from the initial state if the kernel overwrites what its
/// gradient needs.
Direction GradientProbe::reverse() {
  reset({}, 0);
  const Compiled &gradient = call.kernel->compiled(
      Mode::Gradient, activeArguments(Mode::Gradient, call), *call.device);
  bool overwrites = !gradient.code->overwritten.empty();
  if (!overwrites)
    detail::launch(call, Mode::Primal);
  for (const ProbeInput &input : all)
    upload(*call.arguments[input.argument].array->grad,
           input.cotangent.empty() ? Numbers(input.start.size())
                                   : input.cotangent);
  if (overwrites)
    launchFromInitialState(call, Mode::Gradient);
  else
    detail::launch(call, Mode::Gradient);
  Direction entries;
  for (const ProbeInput &input : all)
    entries.push_back(download(*call.arguments[input.argument].array->grad));
  return entries;
}

ForwardDerivative GradientProbe::forward(const Direction &direction) {
  reset({}, 0);
  for (size_t i = 0; i < all.size(); ++i)
    upload(*call.arguments[all[i].argument].array->dual, direction[i]);
  detail::launch(call, Mode::Tangent);
  ForwardDerivative result;
  for (const ProbeInput &input : all) {
    if (input.cotangent.empty())
      continue;
    Numbers tangent = download(*call.arguments[input.argument].array->dual);
    result.value += ::dot(tangent, input.cotangent);
    for (size_t i = 0; i < tangent.size(); ++i)
      result.magnitude += std::fabs(tangent[i] * input.cotangent[i]);
  }
  return result;
}

Numbers GradientProbe::outputsAt(const Direction &direction, double along) {
  reset(direction, along);
  detail::launch(call, Mode::Primal);
  return outputs();
}

DifferenceQuotient GradientProbe::difference(const Direction &direction,
                                             double step) {
  if (unmoved.empty())
    unmoved = outputsAt(direction, 0);
  Numbers above = outputsAt(direction, step);
  Numbers below = outputsAt(direction, -step);
  DifferenceQuotient result{.step = step};
  double squares = 0;
  size_t at = 0;
  for (const ProbeInput &input : all)
    for (double weight : input.cotangent) {
      double up = above[at] - unmoved[at], down = unmoved[at] - below[at];
      result.value += weight * ((above[at] - below[at]) / (2 * step));
      result.bend += weight * ((up - down) / (2 * step));
      double term =
          weight * std::max(std::fabs(above[at]), std::fabs(below[at]));
      squares += term * term;
      ++at;
    }
  double epsilon = half ? 0x1p-11 : single ? 0x1p-24 : 0x1p-53;
  result.bend = std::fabs(result.bend);
  result.rounding = 8 * epsilon * std::sqrt(squares) / step;
  return result;
}
