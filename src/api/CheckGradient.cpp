#include "costate/check_gradient.h"

#include "api/Checked.h"
#include "api/Recording.h"
#include "costate/device.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <random>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using Values = std::vector<double>;

namespace {
/// One float array argument: the kernel runs on copies of it.
struct Input {
  size_t argument;
  Values start;     ///< contents at the point
  Values direction; ///< of the input
  Values cotangent; ///< of the output; empty unless the kernel writes it
};

/// A central difference, and how far rounding alone may have moved it.
struct Difference {
  double value = 0, rounding = 0;
};

class Check {
public:
  Check(const Kernel &kernel, const Call &call);
  GradientCheck run();

private:
  void copyArguments();
  void chooseDirections(const runtime::KernelCode &code);
  void reset(double along);
  Values outputs();
  double reverse();
  double forward();
  Difference difference(double step);
  void compareDifferences(GradientCheck &check);

  KernelImpl &kernel;
  std::shared_ptr<KernelImpl> shared;
  Call original, call;
  std::vector<Input> inputs;
  std::mt19937_64 random{20240229};
  bool single;          ///< something is computed in f32
  double size = 0;      ///< root mean square of the inputs
  double magnitude = 0; ///< sum of the absolute terms of the inner product
};
} // namespace

static Values download(const ArrayStorage &array) {
  Values values(static_cast<size_t>(array.size));
  if (array.dtype == DType::F64) {
    checked(array.device->download(values.data(), array.buffer));
    return values;
  }
  std::vector<float> narrow(values.size());
  checked(array.device->download(narrow.data(), array.buffer));
  std::copy(narrow.begin(), narrow.end(), values.begin());
  return values;
}

static void upload(ArrayStorage &array, const Values &values) {
  array.version.fetch_add(1);
  if (array.dtype == DType::F64)
    return checked(array.device->upload(array.buffer, values.data()));
  std::vector<float> narrow(values.begin(), values.end());
  checked(array.device->upload(array.buffer, narrow.data()));
}

static double dot(const Values &a, const Values &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

Check::Check(const Kernel &kernel, const Call &call)
    : kernel(*kernel.shared()), shared(kernel.shared()), original(call),
      call(call), single(kernel.ir().find("f32") != std::string::npos) {
  copyArguments();
  chooseDirections(*this->kernel.compiled(Mode::Primal, {}).code);
}

void Check::copyArguments() {
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

static Values gaussian(std::mt19937_64 &random, size_t count) {
  std::normal_distribution<double> normal;
  Values values(count);
  for (double &value : values)
    value = normal(random);
  return values;
}

void Check::chooseDirections(const runtime::KernelCode &code) {
  double norm = 0, squares = 0, count = 0;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const ArrayStorage *array = call.arguments[i].array.get();
    if (!array || !isFloat(array->dtype))
      continue;
    Input input{i, download(*array), {}, {}};
    input.direction = code.accesses[i].read
                          ? gaussian(random, input.start.size())
                          : Values(input.start.size());
    if (code.accesses[i].written)
      input.cotangent = gaussian(random, input.start.size());
    norm += dot(input.direction, input.direction);
    squares += dot(input.start, input.start);
    count += static_cast<double>(input.start.size());
    inputs.push_back(std::move(input));
  }
  if (inputs.empty())
    raise(ErrorCode::MissingGradient,
          kernel.title() +
              " takes no floating-point array: it has no gradient");
  norm = std::sqrt(norm);
  for (Input &input : inputs)
    for (double &value : input.direction)
      value /= norm > 0 ? norm : 1;
  size = count > 0 ? std::sqrt(squares / count) : 0;
}

/// Puts the copies at the point plus `along` times the direction.
void Check::reset(double along) {
  for (size_t i = 0; i < call.arguments.size(); ++i)
    if (call.arguments[i].array)
      checked(call.device->copy(call.arguments[i].array->buffer,
                                original.arguments[i].array->buffer));
  for (const Input &input : inputs) {
    Values values = input.start;
    for (size_t i = 0; i < values.size(); ++i)
      values[i] += along * input.direction[i];
    upload(*call.arguments[input.argument].array, values);
  }
}

Values Check::outputs() {
  Values all;
  for (const Input &input : inputs)
    if (!input.cotangent.empty()) {
      Values values = download(*call.arguments[input.argument].array);
      all.insert(all.end(), values.begin(), values.end());
    }
  return all;
}

/// By hand, or from the initial state if the kernel overwrites what its
/// gradient needs.
double Check::reverse() {
  reset(0);
  const Compiled &gradient =
      kernel.compiled(Mode::Gradient, activeArguments(Mode::Gradient, call));
  bool overwrites = !gradient.code->overwritten.empty();
  if (!overwrites)
    detail::launch(shared, Mode::Primal, call);
  for (const Input &input : inputs)
    upload(*call.arguments[input.argument].array->grad,
           input.cotangent.empty() ? Values(input.start.size())
                                   : input.cotangent);
  if (overwrites)
    launchFromInitialState(shared, Mode::Gradient, call);
  else
    detail::launch(shared, Mode::Gradient, call);
  double sum = 0;
  for (const Input &input : inputs)
    sum += dot(download(*call.arguments[input.argument].array->grad),
               input.direction);
  return sum;
}

double Check::forward() {
  reset(0);
  for (const Input &input : inputs)
    upload(*call.arguments[input.argument].array->dual, input.direction);
  detail::launch(shared, Mode::Tangent, call);
  double sum = 0;
  for (const Input &input : inputs) {
    if (input.cotangent.empty())
      continue;
    Values tangent = download(*call.arguments[input.argument].array->dual);
    sum += dot(tangent, input.cotangent);
    for (size_t i = 0; i < tangent.size(); ++i)
      magnitude += std::fabs(tangent[i] * input.cotangent[i]);
  }
  return sum;
}

Difference Check::difference(double step) {
  reset(step);
  detail::launch(shared, Mode::Primal, call);
  Values above = outputs();
  reset(-step);
  detail::launch(shared, Mode::Primal, call);
  Values below = outputs();
  Difference result;
  double squares = 0;
  size_t at = 0;
  for (const Input &input : inputs)
    for (double weight : input.cotangent) {
      result.value += weight * ((above[at] - below[at]) / (2 * step));
      double term =
          weight * std::max(std::fabs(above[at]), std::fabs(below[at]));
      squares += term * term;
      ++at;
    }
  double epsilon = single ? 0x1p-24 : 0x1p-53;
  result.rounding = 8 * epsilon * std::sqrt(squares) / step;
  return result;
}

/// Several steps: large ones bend, small ones round. The best counts.
void Check::compareDifferences(GradientCheck &check) {
  double scale = std::max({std::fabs(check.reverse), std::fabs(check.forward),
                           0.01 * magnitude, 1e-300});
  check.forward_error = std::fabs(check.reverse - check.forward) / scale;
  check.difference_error = INFINITY;
  const double first = single ? 1e-1 : 1e-2, last = single ? 1e-3 : 1e-7;
  for (double relative = first; relative > 0.9 * last; relative /= 10) {
    double step = relative * std::max(size, 1e-3);
    Difference found = difference(step);
    double distance = std::fabs(check.reverse - found.value);
    double error = std::max(0.0, distance - found.rounding) / scale;
    if (error < check.difference_error || check.step == 0) {
      check.difference = found.value;
      check.step = step;
      check.difference_error = error;
    }
  }
}

GradientCheck Check::run() {
  GradientCheck check;
  check.kernel = kernel.program->name();
  check.forward_tolerance = single ? 1e-3 : 1e-9;
  check.difference_tolerance = single ? 2e-2 : 1e-5;
  check.reverse = reverse();
  check.forward = forward();
  compareDifferences(check);
  check.ok = check.forward_error <= check.forward_tolerance &&
             check.difference_error <= check.difference_tolerance;
  return check;
}

GradientCheck detail::check_gradient(const Kernel &kernel,
                                     std::span<const ArgumentValue> arguments) {
  if (!kernel.shared())
    raise(ErrorCode::BadArgument,
          "this kernel is empty; make one with kernel(name, lambda)");
  if (kernel.derivation().mode != Mode::Primal || kernel.derivation().order)
    raise(ErrorCode::BadArgument,
          kernel.shared()->title() +
              ": check_gradient takes a kernel, not a gradient or a tangent of "
              "one; give it the kernel itself");
  RecordingPause pause;
  return Check(kernel, detail::bind(*kernel.shared(), arguments)).run();
}

std::ostream &costate::operator<<(std::ostream &out,
                                  const GradientCheck &check) {
  char text[512];
  std::snprintf(
      text, sizeof text,
      "gradient of `%s`: %s\n"
      "  reverse     % .15e\n"
      "  forward     % .15e  relative error %.1e (at most %.1e)\n"
      "  difference  % .15e  relative error %.1e (at most %.1e), step %.1e\n",
      check.kernel.c_str(), check.ok ? "ok" : "WRONG", check.reverse,
      check.forward, check.forward_error, check.forward_tolerance,
      check.difference, check.difference_error, check.difference_tolerance,
      check.step);
  return out << text;
}
