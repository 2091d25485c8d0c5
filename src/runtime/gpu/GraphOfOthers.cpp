#include "runtime/gpu/GraphOfOthers.h"

#include <algorithm>

namespace costate::runtime::gpu {

GraphOfOthers::~GraphOfOthers() {
  for (std::byte *address : addresses)
    engine.memory.real->release(address);
}

/// Code is loaded once, and launches before have told how large tapes get.
Result<> GraphOfOthers::learn(const Engine &device,
                              const std::shared_ptr<const DeviceCode> &code) {
  LoadedCode &own = engine.loaded[code.get()];
  auto known = device.loaded.find(code.get());
  if (own.module || known == device.loaded.end() || !known->second.module)
    return {};
  const LoadedCode &loaded = known->second;
  own = {code, loaded.module, nullptr, loaded.fullGrids, loaded.counted};
  if (!loaded.needs)
    return {};
  size_t functions = code->functions.size();
  auto needs = TapeNeeds::make(engine.memory, functions);
  if (!needs)
    return needs.error();
  own.needs = std::move(*needs);
  std::copy_n(loaded.needs->onHost(0), functions, own.needs->onHost(0));
  return engine.driver().upload(
      reinterpret_cast<std::byte *>(own.needs->onDevice(0)),
      own.needs->onHost(0), functions * sizeof(TapeNeed));
}

/// Acquires memory and code beside the capture.
Result<> GraphOfOthers::rehearse(const Engine &device, CapturingDriver &driver,
                                 const LaunchRequest &request) {
  Excursion aside(*engine.memory.real, Place::Aside);
  if (!aside.begun)
    return aside.begun;
  CaptureScope scope(engine.memory, driver);
  Result<> learnt = learn(device, request.code->device);
  if (!learnt)
    return learnt;
  Result<LaunchReport> rehearsed = gpu::launch(engine, request);
  return rehearsed ? aside.end() : rehearsed.error();
}

/// Later launches may need more: those before have still what they had.
void GraphOfOthers::keepScratch() {
  for (const std::shared_ptr<void> &one : engine.memory.keepScratch())
    if (one && std::ranges::find(scratch, one) == scratch.end())
      scratch.push_back(one);
}

Result<LaunchReport> GraphOfOthers::launch(const Engine &device,
                                           const LaunchRequest &request) {
  CapturingDriver driver(*engine.memory.real);
  if (Result<> rehearsed = rehearse(device, driver, request); !rehearsed)
    return rehearsed.error();
  keepScratch();
  driver.keep();
  Excursion inGraph(*engine.memory.real, Place::InGraph);
  if (!inGraph.begun)
    return inGraph.begun.error();
  CaptureScope scope(engine.memory, driver);
  Result<LaunchReport> report = gpu::launch(engine, request);
  if (report)
    report->isInGraph = true;
  return report;
}

} // namespace costate::runtime::gpu
