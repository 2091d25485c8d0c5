#include "api/CustomScope.h"

#include "api/Checked.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::Box;

void Guard::beforeWrite(const std::shared_ptr<ArrayStorage> &array) {
  with.lastWrites.try_emplace(array->identity, array->lastWrite);
  auto known = with.lastUse.find(array.get());
  if (known == with.lastUse.end() || array->isCompanion)
    return;
  all.push_back({array, known->second, array->version, array->lastWrite});
  log.want(array, Box::whole(array->extents));
}

/// What has been put back counts as no write between the last entry and the
/// next.
Guard::~Guard() {
  log.rollBack();
  for (const Kept &kept : all) {
    kept.lastUse->after += kept.array->version - kept.version;
    kept.array->lastWrite = kept.lastWrite;
  }
}

uint64_t Guard::lastWriteOf(const ArrayStorage &array) const {
  auto known = with.lastWrites.find(array.identity);
  return known == with.lastWrites.end() ? array.lastWrite.load()
                                        : known->second;
}

bool Guard::isLost(const ArrayStorage &array, uint64_t time) const {
  return with.log.loss(array, Box::whole(array.extents), time);
}

CustomScope::CustomScope(const CustomEntry &entry, Part part, Guard *guard)
    : entry(entry), part(part), guard(guard), around(innermost()),
      newest(runtime::newestIdentity()) {
  thisThread().scope = this;
}

CustomScope::~CustomScope() { thisThread().scope = around; }

/// What belongs to the function itself: what it has made or written, and the
/// derivatives that it computes.
bool CustomScope::isFree(const ArrayStorage &array) const {
  return array.identity > newest || written.contains(array.identity) ||
         (part != Part::Primal && array.isCompanion);
}

void CustomScope::refuse(const std::string &use, const What &what,
                         const std::string &why, ErrorCode code) const {
  const char *functions[] = {"primal", "gradient", "tangent"};
  raise(code, std::string("`") + functions[static_cast<int>(part)] + "` of " +
                  entry.title() + " " + use + " " + what() + ", which " + why);
}

void CustomScope::find(const Array &array, bool written) {
  if (array->isCompanion)
    return;
  auto [place, isNew] = positions.try_emplace(array->identity, found.size());
  if (isNew)
    found.push_back({.array = array, .before = array->version});
  found[place->second].written |= written;
}

/// What the gradient of a launch that finds its arrays looks at is as the
/// launch left it.
void CustomScope::requireOld(const ArrayStorage &array,
                             const What &what) const {
  if (isFree(array))
    return;
  if (entry.find(array)) {
    if (guard->isLost(array, entry.wants.front().time))
      refuse("reads", what,
             "has been overwritten since, when no copy could be kept; copy "
             "what it needs into an array of its own, or compute it again",
             ErrorCode::CannotReplay);
  } else if (guard->lastWriteOf(array) > entry.endCount()) {
    refuse("reads", what,
           "has been written since, and which the launch itself does not use; "
           "let it read that array too, or pass what it needs in an array of "
           "its own",
           ErrorCode::CannotReplay);
  }
}

void CustomScope::read(const Array &array, const What &what) {
  if (entry.findsArrays())
    return isGradient() ? requireOld(*array, what) : find(array, false);
  if (isFree(*array))
    return;
  std::optional<size_t> argument = entry.find(*array);
  if (!argument)
    refuse("reads", what, "its `reads` does not name; name it there");
  if (isGradient() && !entry.isNeeded(*argument))
    refuse("reads", what,
           "its `unneeded` names, so that it may hold anything; take it out of "
           "there");
  if (!isGradient() && !entry.arguments[*argument].read)
    refuse("reads", what, "only its `writes` names; name it in `reads` too");
}

void CustomScope::write(const Array &array, const What &what) {
  if (entry.findsArrays() && !isGradient())
    return find(array, true);
  std::optional<size_t> argument = entry.find(*array);
  bool isNamed = argument && entry.arguments[*argument].written;
  if (!isGradient() && !isNamed && !isFree(*array))
    refuse("writes", what,
           "its `writes` does not name; name it there, and in `unneeded` too "
           "if nobody looks at it afterwards");
  bool isFirst = written.insert(array->identity).second;
  if (isFirst && guard)
    guard->beforeWrite(array);
}

void CustomScope::update(const Array &array, const What &what) {
  if (entry.findsArrays() && isGradient() && !array->isScratch)
    requireOld(*array, what);
}

void CustomScope::writeOutside(const Array &array) {
  if (entry.findsArrays() && !isGradient())
    find(array, true);
}
