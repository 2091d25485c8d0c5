#include "runtime/streams/Api.h"

namespace costate::runtime::streams {
namespace {

template <class... Params> Status isMissing(Params...) { return notSupported; }

template <class... Params>
bool find(const Lookup &lookup, const Symbol &symbol,
          Status (*&function)(Params...)) {
  if (streams::find(lookup, symbol.name, function))
    return true;
  function = isMissing<Params...>;
  return symbol.isOptional;
}

} // namespace

const char *findAll(const Lookup &lookup, const Symbols &symbols,
                    Functions &functions) {
#define COSTATE_STREAM_FIND(member, ...)                                       \
  if (!find(lookup, symbols.member, functions.member))                         \
    return symbols.member.name;
  COSTATE_STREAM_FUNCTIONS(COSTATE_STREAM_FIND)
#undef COSTATE_STREAM_FIND
  return nullptr;
}

Result<> initialise(const Api &api) {
  Status status = api.init(0);
  const Words &words = api.words();
  if (status == noDevice || status == invalidDevice)
    return Failure{ErrorCode::NoDevice,
                   std::string(words.driver) +
                       " finds no GPU that it may use; see " + words.search +
                       ", or choose another device"};
  if (status != success)
    return Failure{ErrorCode::NoDevice,
                   std::string(words.driver) + " does not start: " +
                       api.text(status) + "; " + words.tool + " may tell more"};
  return {};
}

std::string statusText(const char *name, const char *text, Status status) {
  if (!name || !text)
    return "error " + std::to_string(status);
  return std::string(name) + " (" + text + ")";
}

} // namespace costate::runtime::streams
