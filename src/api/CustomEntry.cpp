#include "api/CustomEntry.h"

#include "api/Checked.h"
#include "api/CustomScope.h"

#include <algorithm>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::Box;
using runtime::VersionLog;

std::string detail::titleOf(const CustomLaunch &launch) {
  return "custom launch `" + launch.name + "`" + sourceText(launch.loc);
}

CustomEntry::CustomEntry(CustomLaunch custom, bool repeats)
    : launch(std::move(custom)), repeats(repeats) {
  if (launch.finds_arrays &&
      launch.reads.size() + launch.writes.size() + launch.unneeded.size())
    raise(ErrorCode::BadArgument,
          title() + " names arrays, but finds them by itself; leave out one");
  auto add = [&](const AnyArray &array) -> TapeArgument & {
    if (!array)
      raise(ErrorCode::BadArgument,
            title() + " names an array without storage; make one with "
                      "device.array<T>(...)");
    for (TapeArgument &known : arguments)
      if (known.array == array.storage())
        return known;
    return arguments.emplace_back(TapeArgument{array.storage()});
  };
  for (const AnyArray &array : launch.reads)
    add(array).read = true;
  for (const AnyArray &array : launch.writes)
    add(array).written = true;
  size_t named = arguments.size();
  for (const AnyArray &array : launch.unneeded)
    add(array);
  if (arguments.size() != named)
    raise(ErrorCode::BadArgument,
          title() + ": an array in `unneeded` is in neither `reads` nor "
                    "`writes`; name it there too");
}

std::string CustomEntry::title() const { return titleOf(launch); }

std::string CustomEntry::argumentText(size_t argument) const {
  if (findsArrays())
    return "an array of " + runtime::contentsText(*arguments[argument].array);
  auto numberIn = [&](const std::vector<AnyArray> &list) {
    size_t k = 0;
    while (list[k].storage() != arguments[argument].array)
      ++k;
    return std::to_string(k + 1);
  };
  return arguments[argument].read
             ? "array " + numberIn(launch.reads) + " of `reads`"
             : "array " + numberIn(launch.writes) + " of `writes`";
}

void CustomEntry::setFound(std::vector<TapeArgument> found) {
  for (TapeArgument &argument : found) {
    bool isTemporary = argument.array.use_count() == 1;
    if (isTemporary)
      continue;
    argument.replaced = argument.written; // as the user says
    argument.written &= launch.gradient != nullptr;
    positions[argument.array->identity] = arguments.size();
    arguments.push_back(std::move(argument));
  }
}

std::optional<size_t> CustomEntry::find(const ArrayStorage &array) const {
  if (findsArrays()) {
    auto known = positions.find(array.identity);
    return known == positions.end() ? std::nullopt
                                    : std::optional(known->second);
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].array.get() == &array)
      return i;
  return std::nullopt;
}

bool CustomEntry::isNeeded(size_t argument) const {
  return std::none_of(launch.unneeded.begin(), launch.unneeded.end(),
                      [&](const AnyArray &array) {
                        return array.storage() == arguments[argument].array;
                      });
}

std::string CustomEntry::obstacle() const {
  return repeats ? "" : "it is code of the user that may have other effects";
}

void CustomEntry::wantBefore(VersionLog *log) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].read && isNeeded(i))
      want(log, i, Box::whole(arguments[i].array->extents));
}

void CustomEntry::wantAfter(VersionLog *log) {
  if (writesAfter == 0)
    writesAfter = runtime::writeCount();
  bool optional = findsArrays();
  if (optional && !launch.gradient)
    return;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].read && isNeeded(i))
      want(log, i, Box::whole(arguments[i].array->extents), /*inPlace=*/true,
           optional);
}

void CustomEntry::requireGradient() const {
  if (!launch.gradient && !findsArrays())
    raise(ErrorCode::NotDifferentiable,
          title() + " has no `gradient`; give it one, or launch it outside of "
                    "the recording");
}

bool CustomEntry::writesActive(size_t argument) const {
  const TapeArgument &written = arguments[argument];
  return written.written && isFloat(written.array->dtype) &&
         std::any_of(arguments.begin(), arguments.end(),
                     [](const TapeArgument &other) {
                       return other.read && other.array->grad;
                     });
}

void CustomEntry::reverse(const Reversing &with) const {
  for (const Want &want : wants)
    rewind(with, want);
  if (!launch.gradient)
    return;
  Guard guard(with);
  CustomScope scope(*this, CustomScope::Part::Gradient, &guard);
  launch.gradient();
}
