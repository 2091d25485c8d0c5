#include "costate/custom_launch.h"

#include "api/Checked.h"
#include "api/CustomScope.h"
#include "api/Recording.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;

static const std::function<void()> &
required(const CustomLaunch &launch, const std::function<void()> &function,
         const char *name) {
  if (!function)
    raise(ErrorCode::NotDifferentiable, titleOf(launch) + " has no `" + name +
                                            "`; give it one where it is made");
  return function;
}

using Arrays = std::vector<std::shared_ptr<ArrayStorage>>;

/// The adjoints or tangents of the arrays that `launch` names.
static Arrays companions(const CustomLaunch &launch,
                         std::shared_ptr<ArrayStorage> ArrayStorage::*slot) {
  Arrays arrays;
  for (const std::vector<AnyArray> *list : {&launch.reads, &launch.writes})
    for (const AnyArray &array : *list)
      if (array && array.storage().get()->*slot)
        arrays.push_back(array.storage().get()->*slot);
  return arrays;
}

/// Runs `body` as one entry of the recording of this thread, if there is one.
static void runRecorded(const CustomLaunch &launch, CustomScope::Part part,
                        const std::function<void()> &body, Arrays derivatives) {
  std::shared_ptr<TapeImpl> tape = recordingTape();
  if (!tape)
    return body();
  auto entry = std::make_unique<CustomEntry>(
      launch, launch.repeatable && part == CustomScope::Part::Primal);
  entry->derivatives = std::move(derivatives);
  CustomEntry &custom = *entry;
  recordEntry(*tape, std::move(entry), [&] {
    RecordingPause pause;
    CustomScope scope(custom, part);
    body();
    custom.setFound(scope.takeFound());
  });
}

void CustomLaunch::operator()() const {
  if (!primal)
    raise(ErrorCode::BadArgument, titleOf(*this) +
                                      " has no `primal`; give it one where it "
                                      "is made");
  runRecorded(*this, CustomScope::Part::Primal, primal, {});
}

void CustomLaunch::jvp() const {
  runRecorded(*this, CustomScope::Part::Tangent,
              required(*this, tangent, "tangent"),
              companions(*this, &ArrayStorage::dual));
}

void CustomLaunch::grad() const {
  const std::function<void()> &function = required(*this, gradient, "gradient");
  {
    RecordingPause pause;
    function();
  }
  recordDerivatives("the gradient of " + titleOf(*this),
                    companions(*this, &ArrayStorage::grad));
}
