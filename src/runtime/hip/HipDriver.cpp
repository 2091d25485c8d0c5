#include "runtime/hip/HipDriver.h"

#include "base/AmdChip.h"
#include "runtime/streams/StreamDriver.h"

namespace costate::runtime::hip {
namespace {

class HipDriver final : public StreamDriver {
public:
  HipDriver(const HipApi &api, Opened opened)
      : StreamDriver(std::move(opened)), api(api) {}

  Result<std::shared_ptr<gpu::Module>>
  load(const gpu::DeviceCode &code) override;

private:
  const HipApi &api;
};

/// HIP reads the image again when a kernel is first used.
Result<std::shared_ptr<gpu::Module>>
HipDriver::load(const gpu::DeviceCode &code) {
  auto image = std::make_shared<const std::string>(code.image);
  Code made = nullptr;
  Status status = session->call(api.own.loadCode, &made,
                                static_cast<const void *>(image->data()));
  if (status)
    return session->failure(status, "load code for " + gpuProperties.chip);
  return std::shared_ptr<gpu::Module>(
      std::make_shared<StreamModule>(session, made, std::move(image)));
}

Failure unusable(const gpu::Properties &gpu, const std::string &why) {
  return {ErrorCode::NoDevice,
          gpu.name + " cannot be used: " + why + "; choose another device"};
}

gpu::Properties read(Query &query) {
  gpu::Properties gpu;
  gpu.name = query.name();
  gpu.memory = query.memory();
  gpu.multiprocessors = query.attribute(DeviceAttribute::Multiprocessors);
  gpu.residentThreads =
      gpu.multiprocessors *
      query.attribute(DeviceAttribute::ThreadsOfMultiprocessor);
  gpu.sharedPerBlock = query.bytes(DeviceAttribute::LargestSharedOfBlock);
  gpu.sharedPerMultiprocessor =
      query.bytes(DeviceAttribute::SharedOfMultiprocessor);
  gpu.l2Bytes = query.bytes(DeviceAttribute::L2Bytes);
  gpu.blockThreads = query.attribute(DeviceAttribute::LargestBlock);
  gpu.blocksProgress = true;
  return gpu;
}

/// Old versions do not know the question.
bool hasPools(const HipApi &api, DeviceNumber device) {
  Query query(api, device);
  bool answer = query.attribute(DeviceAttribute::HasPools);
  if (query.answered())
    return answer;
  api.own.forgetError();
  return false;
}

Result<Description> describe(const HipApi &api, DeviceNumber device) {
  Query query(api, device);
  gpu::Properties gpu = read(query);
  int lanes = query.attribute(DeviceAttribute::Lanes);
  if (Result<> answered = query.answered(); !answered)
    return answered.error();
  gpu.mostBlocks = UINT32_MAX / gpu.blockThreads; // HIP counts threads
  std::string chip = api.chip(device);
  gpu.chip = amdChip(chip);
  std::optional<GpuShape> shape = parseAmdChip(gpu.chip);
  if (!shape)
    return unusable(gpu, chip.empty()
                             ? "HIP does not say which chip it is"
                             : "no code is made for its chip, " + chip);
  if (shape->lanes != lanes)
    return unusable(
        gpu, "code for " + gpu.chip + " has " + std::to_string(shape->lanes) +
                 " lanes in a warp, the device says " + std::to_string(lanes));
  gpu.shape = *shape;
  return Description{std::move(gpu), api.usesPools && hasPools(api, device)};
}

} // namespace

Result<std::shared_ptr<gpu::Driver>> openHip(int ordinal) {
  Result<const HipApi *> api = loadApi();
  if (!api)
    return api.error();
  return openHip(**api, ordinal);
}

Result<std::shared_ptr<gpu::Driver>> openHip(const HipApi &api, int ordinal) {
  auto opened = openDevice(
      api, ordinal, [&](DeviceNumber device) { return describe(api, device); });
  if (!opened) {
    api.own.forgetError();
    return opened.error();
  }
  return std::shared_ptr<gpu::Driver>(
      std::make_shared<HipDriver>(api, std::move(*opened)));
}

} // namespace costate::runtime::hip
