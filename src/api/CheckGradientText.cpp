/// What a check of a gradient has found, for people.

#include "costate/check_gradient.h"

#include <cstdio>
#include <ostream>

using namespace costate;
using Entry = GradientCheck::Entry;

static std::string lineText(const char *name, double value) {
  char text[64];
  std::snprintf(text, sizeof text, "  %-10s  % .15e", name, value);
  return text;
}

static std::string errorText(double error, double tolerance) {
  char text[80];
  std::snprintf(text, sizeof text, "  relative error %.1e (at most %.1e)",
                error, tolerance);
  return text;
}

static std::string placeText(const Entry &entry) {
  std::string index;
  for (int64_t i : entry.index)
    index += (index.empty() ? "" : ", ") + std::to_string(i);
  const std::string &array = entry.array;
  if (entry.index.empty())
    return array;
  return "element " + (entry.index.size() == 1 ? index : "(" + index + ")") +
         " of " + array;
}

static std::string advice(const GradientCheck &check) {
  bool modesDiffer = !(check.forward_error <= check.forward_tolerance &&
                       check.worst.forward_error <= check.forward_tolerance);
  if (check.ok)
    return check.differences_tell
               ? ""
               : "  (the outputs are so large that rounding hides their change "
                 "from differences)\n";
  if (modesDiffer)
    return "  reverse and forward mode differ: look for races between "
           "work items with KernelOptions::debug;\n"
           "  if there is none, this is a defect of Costate\n";
  return "  both modes agree, differences do not: is there a kink or a jump "
         "near these arguments, or something\n"
         "  without a derivative on the way, such as a cast to an integer?\n";
}

std::ostream &costate::operator<<(std::ostream &out,
                                  const GradientCheck &check) {
  char step[32];
  std::snprintf(step, sizeof step, ", step %.1e", check.step);
  out << "gradient of `" << check.kernel << "`: " << (check.ok ? "ok" : "WRONG")
      << ", along a random direction:\n"
      << lineText("reverse", check.reverse) << "\n"
      << lineText("forward", check.forward)
      << errorText(check.forward_error, check.forward_tolerance) << "\n"
      << lineText("difference", check.difference)
      << errorText(check.difference_error, check.difference_tolerance) << step
      << "\n";
  if (check.entries > 0) {
    const Entry &worst = check.worst;
    out << "worst of " << check.entries << " entries looked at, of "
        << check.all_entries << ": " << placeText(worst) << "\n"
        << lineText("reverse", worst.reverse) << "\n"
        << lineText("forward", worst.forward)
        << errorText(worst.forward_error, check.forward_tolerance) << "\n"
        << lineText("difference", worst.difference)
        << errorText(worst.difference_error, check.difference_tolerance)
        << "\n";
  }
  return out << advice(check);
}
