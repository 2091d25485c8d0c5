#include "runtime/Text.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace costate::runtime {

profile::Span LaunchRequest::partAt(profile::Kind kind, int64_t site) const {
  std::string source;
  if (site >= 0 && static_cast<size_t>(site) < code->sites.size()) {
    Loc loc = code->sites[static_cast<size_t>(site)];
    source = std::string(loc.file) + ":" + std::to_string(loc.line);
  }
  return {kind, title.empty() ? code->name : std::string(title), source};
}

std::string bytesText(size_t bytes) {
  if (bytes < 1024)
    return std::to_string(bytes) + " bytes";
  const char *units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; value >= 1024 && unit < 5; ++unit)
    value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g %s", value, units[unit]);
  return text;
}

std::string siteText(const KernelCode &code, int64_t site) {
  if (site < 0 || static_cast<size_t>(site) >= code.sites.size())
    return "";
  const Loc &loc = code.sites[site];
  return std::string(" at ") + loc.file + ":" + std::to_string(loc.line);
}

std::string indexText(int64_t number, std::span<const int64_t> extents) {
  if (extents.empty())
    return "";
  std::string text;
  for (size_t d = extents.size(); d-- > 1; number /= extents[d])
    text = ", " + std::to_string(number % extents[d]) + text;
  text = std::to_string(number) + text;
  return extents.size() == 1 ? text : "(" + text + ")";
}

static size_t slotsOf(const Parameter &parameter) {
  return parameter.rank < 0 ? 1 : 1 + static_cast<size_t>(parameter.rank);
}

size_t slotOf(const KernelCode &code, size_t parameter) {
  size_t slot = 0;
  for (size_t i = 0; i < parameter; ++i)
    slot += slotsOf(code.parameters[i]);
  return slot;
}

std::vector<int64_t> extentsOf(const LaunchRequest &request, size_t parameter) {
  auto extents =
      request.arguments.subspan(slotOf(*request.code, parameter) + 1,
                                request.code->parameters[parameter].rank);
  return {extents.begin(), extents.end()};
}

std::string argumentText(const KernelCode &code, size_t argument) {
  return argument < code.arguments.size()
             ? code.arguments[argument]
             : "argument " + std::to_string(argument + 1);
}

std::string parameterText(const KernelCode &code, const Parameter &parameter) {
  using Role = Parameter::Role;
  std::string text = argumentText(code, parameter.argument);
  if (parameter.role == Role::Adjoint)
    text = "the gradient of " + text;
  if (parameter.role == Role::Version || parameter.role == Role::Scratch)
    text = "a copy of " + text;
  if (parameter.role == Role::Owners)
    text = "what tells who writes " + text;
  if (parameter.role == Role::Marks)
    text = "what tells when the launch writes " + text;
  for (uint32_t order = 0; order < parameter.order; ++order)
    text = "the tangent of " + text;
  return text;
}

std::string elementText(const LaunchRequest &request, size_t parameter,
                        int64_t element, Naming naming) {
  const Parameter &array = request.code->parameters[parameter];
  std::string index = indexText(element, extentsOf(request, parameter));
  return (index.empty() ? "" : "element " + index + " of ") +
         (naming == Naming::OfParameter
              ? parameterText(*request.code, array)
              : argumentText(*request.code, array.argument));
}

Failure noStreams(const std::string &device) {
  return {ErrorCode::BadArgument,
          "`" + device +
              "` has no streams of others that its work could go to; "
              "`use_stream` is for `cuda`"};
}

Failure noRanks() {
  return {
      ErrorCode::BadArgument,
      "only `cuda` sends to other ranks by itself; make a group of ranks of "
      "the host: in_process, or that of MPI or of torch.distributed"};
}

std::string numberText(double number) {
  if (std::isnan(number))
    return "nan";
  char text[32];
  float narrow = static_cast<float>(number);
  auto end = narrow == number ? std::to_chars(text, std::end(text), narrow)
                              : std::to_chars(text, std::end(text), number);
  return std::string(text, end.ptr);
}

} // namespace costate::runtime
