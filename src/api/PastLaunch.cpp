#include "api/PastLaunch.h"

#include "api/Checked.h"
#include "api/GraphImpl.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::Access;
using runtime::ArrayStorage;

static std::vector<uint64_t> identitiesOf(const Call &call) {
  std::vector<uint64_t> identities;
  identities.reserve(call.arguments.size());
  for (const BoundArgument &argument : call.arguments)
    identities.push_back(argument.array ? argument.array->identity : 0);
  return identities;
}

/// In a graph: what it will be, counted from the beginning of a replay.
static uint64_t versionOf(const ArrayStorage &array) {
  Capture *capture = Capture::current();
  return capture ? capture->writes[&array] : array.version.load();
}

static void remember(const Call &call, PastLaunch past) {
  if (Capture *capture = Capture::current())
    capture->past[{call.kernel.get(), identitiesOf(call)}] = std::move(past);
  else
    call.kernel->remember(identitiesOf(call), std::move(past));
}

static std::optional<PastLaunch> recall(const Call &call) {
  Capture *capture = Capture::current();
  if (!capture)
    return call.kernel->recall(identitiesOf(call));
  auto found = capture->past.find({call.kernel.get(), identitiesOf(call)});
  return found == capture->past.end() ? std::nullopt
                                      : std::optional(found->second);
}

/// Only kernels that read what they write can reload their own stores.
void detail::rememberLaunch(const BoundLaunch &launch) {
  if (!launch.canReload)
    return;
  size_t arguments = launch.call.arguments.size();
  PastLaunch past;
  past.scalars.reserve(arguments);
  for (const BoundArgument &argument : launch.call.arguments)
    past.scalars.push_back(argument.bits);
  for (size_t i = 0; i < launch.all().size(); ++i) {
    const runtime::Parameter &parameter = launch.code.parameters[i];
    const ArrayStorage *array = launch.all()[i].array;
    if (!array)
      continue;
    while (past.versions.size() <= parameter.order)
      past.versions.emplace_back(arguments, PastLaunch::unknown);
    past.versions[parameter.order][parameter.argument] = versionOf(*array);
  }
  remember(launch.call, std::move(past));
}

namespace {
class ReplayCheck {
public:
  explicit ReplayCheck(const BoundLaunch &gradient)
      : call(gradient.call), code(gradient.code), order(gradient.chain.order),
        reloaded(gradient.reloaded) {}

  std::optional<Failure> run() {
    if (!code.overwritten.empty())
      return Failure{ErrorCode::CannotReplay, code.overwritten};
    if (!reloaded)
      return std::nullopt;
    std::optional<PastLaunch> past = recall(call);
    if (!past)
      return refusal(call.kernel->title() + " has not run on these arrays" +
                     (Capture::current() ? " in this graph" : ""));
    for (size_t i = 0; i < call.arguments.size(); ++i)
      if (std::string why = change(i, *past); !why.empty())
        return refusal(argumentText(*call.kernel, i) + why);
    return std::nullopt;
  }

private:
  Failure refusal(const std::string &situation) const {
    std::string what =
        "what the kernel stored in " + nameOf(*call.kernel, *reloaded);
    std::string launch = "jvp";
    for (unsigned k = 1; k < order; ++k)
      launch = "tangent()." + launch;
    return {ErrorCode::CannotReplay,
            situation + ", and this gradient reads back " + what +
                (order ? " and its tangent; launch `" + launch + "`"
                       : "; run the kernel") +
                " on these arguments right before" +
                (order ? "" : ", or record both with a `Tape`")};
  }

  /// What has become of argument `i`; empty: nothing that matters.
  std::string change(size_t i, const PastLaunch &past) const {
    if (call.arguments[i].array)
      return code.accesses[i].needed ? changeOf(i, past) : "";
    return call.arguments[i].bits != past.scalars[i]
               ? " has another value than when the kernel last ran"
               : "";
  }

  std::string changeOf(size_t i, const PastLaunch &past) const {
    if (call.arguments[i].array->strangers > 0 && !Capture::current())
      return " has memory that others may have written since the kernel last "
             "ran";
    runtime::Parameter parameter{runtime::Parameter::Role::Primal,
                                 static_cast<uint32_t>(i)};
    for (; parameter.order <= order; ++parameter.order) {
      const ArrayStorage *array = arrayOf(call, parameter);
      if (!array)
        return "";
      const char *tangent = parameter.order ? ": its tangent" : "";
      uint64_t version = parameter.order < past.versions.size()
                             ? past.versions[parameter.order][i]
                             : PastLaunch::unknown;
      if (version == PastLaunch::unknown)
        return std::string(tangent) +
               " was not computed when the kernel last ran";
      if (versionOf(*array) != version)
        return std::string(tangent) + " was written since the kernel last ran";
    }
    return "";
  }

  const Call &call;
  const runtime::KernelCode &code;
  const unsigned order;
  const std::optional<size_t> reloaded;
};
} // namespace

std::optional<Failure> detail::findObstacle(const BoundLaunch &gradient) {
  return ReplayCheck(gradient).run();
}
