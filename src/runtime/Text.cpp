#include "runtime/Text.h"

#include <cstdio>

namespace costate::runtime {

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

std::vector<int64_t> extentsOf(const LaunchRequest &request, size_t parameter) {
  const std::vector<Parameter> &parameters = request.code->parameters;
  size_t slot = 1;
  for (size_t i = 0; i < parameter; ++i)
    slot += slotsOf(parameters[i]);
  auto extents = request.arguments.subspan(slot, parameters[parameter].rank);
  return {extents.begin(), extents.end()};
}

std::string elementText(const LaunchRequest &request, size_t parameter,
                        int64_t element) {
  std::string index = indexText(element, extentsOf(request, parameter));
  return (index.empty() ? "" : "element " + index + " of ") + "argument " +
         std::to_string(request.code->parameters[parameter].argument + 1);
}

} // namespace costate::runtime
