#include "api/AccessSet.h"

#include "api/Checked.h"
#include "api/CustomScope.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::Box;

void AccessSet::add(const ArrayUse &use) {
  if (use.read || use.written)
    busy.push_back(static_cast<uint32_t>(uses.size()));
  uses.push_back(use);
}

/// What is both read and written may well have been written first.
void AccessSet::tellCustomLaunches(Part part) const {
  if (!CustomScope::innermost())
    return;
  for (size_t i : busy)
    if (part != Part::Writes && uses[i].read)
      CustomScope::forEach([&](CustomScope &scope) {
        auto what = [&] { return useText(i); };
        auto array = uses[i].array->shared_from_this();
        uses[i].written ? scope.update(array, what) : scope.read(array, what);
      });
  for (size_t i : busy)
    if (part != Part::Reads && uses[i].written)
      CustomScope::forEach([&](CustomScope &scope) {
        scope.write(uses[i].array->shared_from_this(),
                    [&] { return useText(i); });
      });
}

void AccessSet::tellWatchers(Part part) const {
  for (size_t i : busy)
    if (part != Part::Writes && uses[i].read && uses[i].array->isWatched())
      checked(uses[i].array->announceRead([this] { return readerText(); }));
  for (size_t i : busy)
    if (part != Part::Reads && uses[i].written && uses[i].array->isWatched())
      checked(uses[i].array->announce({*uses[i].array, writtenElements(i),
                                       [this] { return writerText(); }}));
}

void AccessSet::countWrites() const {
  for (size_t i : busy)
    if (uses[i].written)
      uses[i].array->countWrite();
}

void AccessSet::noteOthersWriting() const {
  for (size_t i : busy)
    if (uses[i].written)
      uses[i].array->strangers.fetch_add(1);
}

SingleUse::SingleUse(ArrayStorage &array, const Box *written, User user,
                     Loc loc)
    : written(written), user(user), loc(loc) {
  add({&array, written == nullptr, written != nullptr});
}

std::string SingleUse::useText(size_t use) const {
  return "an array of " + runtime::contentsText(*uses[use].array);
}

void detail::noteUnseenWrite(ArrayStorage &array,
                             std::function<std::string()> writer) {
  array.countWrite();
  if (!array.isWatched())
    return;
  runtime::ArrayWrite write{array, Box::whole(array.extents),
                            std::move(writer)};
  write.past = write.certain = true;
  checked(array.announce(write));
}

static std::string strangersText() {
  return "others who share its memory and may have written it";
}

void detail::noteStrangers(ArrayStorage &array) {
  if (array.strangers > 0)
    noteUnseenWrite(array, strangersText);
}

void detail::keepFromStrangers(ArrayStorage &array) {
  if (array.strangers == 0 || !array.isWatched())
    return;
  runtime::ArrayWrite write{array, Box::whole(array.extents), strangersText};
  write.certain = true;
  checked(array.announce(write));
}
