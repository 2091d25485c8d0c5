#include "runtime/Graph.h"

namespace costate::runtime {

static Result<> perform(Device &device, const KeptLaunch &launch) {
  Result<LaunchReport> report = device.launch(launch.request());
  return report ? Result<>() : report.error();
}

static Result<> perform(Device &device, const KeptFill &fill) {
  return device.fill(fill.buffer, fill.pattern.data(), fill.patternBytes);
}

static Result<> perform(Device &, const KeptCall &call) { return call.body(); }

Result<> perform(Device &device, const Step &step) {
  return std::visit([&](const auto &one) { return perform(device, one); },
                    step);
}

namespace {
class StepGraph final : public Graph {
public:
  StepGraph(Device &device, std::vector<Step> steps)
      : device(device), steps(std::move(steps)) {}

  Result<> replay() override {
    for (const Step &step : steps)
      if (Result<> done = perform(device, step); !done)
        return done;
    return {};
  }

private:
  Device &device;
  const std::vector<Step> steps;
};
} // namespace

std::shared_ptr<Graph> graphOfSteps(Device &device, std::vector<Step> steps) {
  return std::make_shared<StepGraph>(device, std::move(steps));
}

} // namespace costate::runtime
