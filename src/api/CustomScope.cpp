#include "api/CustomScope.h"

#include "api/Checked.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;

static thread_local CustomScope *innermost = nullptr;

CustomScope::CustomScope(const CustomEntry &entry, Part part)
    : entry(entry), part(part), around(innermost),
      newest(runtime::newestIdentity()) {
  innermost = this;
}

CustomScope::~CustomScope() { innermost = around; }
bool CustomScope::isActive() { return innermost; }

/// What belongs to the function itself: what it has made or written, and the
/// derivatives that it computes.
bool CustomScope::isFree(const ArrayStorage &array) const {
  return array.identity > newest || written.contains(array.identity) ||
         (part != Part::Primal && array.isCompanion);
}

void CustomScope::refuse(const std::string &use, const What &what,
                         const std::string &why) const {
  const char *functions[] = {"primal", "gradient", "tangent"};
  raise(ErrorCode::BadArgument,
        std::string("`") + functions[static_cast<int>(part)] + "` of " +
            entry.title() + " " + use + " " + what() + ", which " + why);
}

void CustomScope::read(const ArrayStorage &array, const What &what) const {
  if (isFree(array))
    return;
  std::optional<size_t> argument = entry.find(array);
  if (!argument)
    refuse("reads", what, "its `reads` does not name; name it there");
  if (part == Part::Gradient && !entry.isNeeded(*argument))
    refuse("reads", what,
           "its `unneeded` names, so that it may hold anything; take it out of "
           "there");
  if (part != Part::Gradient && !entry.arguments[*argument].read)
    refuse("reads", what, "only its `writes` names; name it in `reads` too");
}

void CustomScope::write(const ArrayStorage &array, const What &what) {
  std::optional<size_t> argument = entry.find(array);
  bool isNamed = argument && entry.arguments[*argument].written;
  if (part != Part::Gradient && !isNamed && !isFree(array))
    refuse("writes", what,
           "its `writes` does not name; name it there, and in `unneeded` too "
           "if nobody looks at it afterwards");
  written.insert(array.identity);
}

void detail::noteRead(const ArrayStorage &array,
                      const std::function<std::string()> &what) {
  for (CustomScope *scope = innermost; scope; scope = scope->around)
    scope->read(array, what);
}

void detail::noteWrite(const ArrayStorage &array,
                       const std::function<std::string()> &what) {
  for (CustomScope *scope = innermost; scope; scope = scope->around)
    scope->write(array, what);
}
