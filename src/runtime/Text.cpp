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

} // namespace costate::runtime
