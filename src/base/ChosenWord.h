#pragma once
/// Words that environment variables may be.

#include "base/Result.h"

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>

namespace costate {

/// What `variable` says, which must be one of two words or more; `otherwise` if
/// it is not set, or empty.
template <class T>
Result<T> chosenWord(const char *variable, T otherwise,
                     std::initializer_list<std::pair<const char *, T>> words) {
  const char *text = std::getenv(variable);
  std::string chosen = text ? text : "";
  if (chosen.empty())
    return otherwise;
  std::string known;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (chosen == word->first)
      return word->second;
    const char *before = word == words.begin()     ? ""
                         : word + 1 == words.end() ? " or "
                                                   : ", ";
    known += std::string(before) + "`" + word->first + "`";
  }
  return Failure{ErrorCode::BadArgument, std::string(variable) + " is `" +
                                             chosen + "`; it must be " + known};
}

} // namespace costate
