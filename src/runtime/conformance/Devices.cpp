#include "runtime/conformance/Devices.h"

#include "runtime/cpu/CpuDevice.h"
#include "runtime/cuda/CudaDriver.h"
#include "runtime/cuda/Ptx.h"
#include "runtime/gpu/GpuDevice.h"
#include "runtime/simt/Callbacks.h"
#include "runtime/simt/SimtDevice.h"
#include "runtime/streams/Fakes.h"
#include "runtime/vulkan/VulkanDriver.h"

#include <algorithm>

namespace costate::runtime::conformance {
namespace {

/// Slots of a launch, and words of the device function after the first ones.
constexpr size_t Base = 0, Extent = 1, Factor = 2, Term = 3, slotCount = 4;
constexpr size_t wordCount = firstOwnWord + slotCount;

void apply(const uint64_t *slots, int64_t i) {
  auto *y = reinterpret_cast<uint64_t *>(slots[Base]);
  y[i] = y[i] * slots[Factor] + slots[Term];
}

//===-- On the CPU --------------------------------------------------------===//

void cpuBody(const void *slots, Worker *, int64_t begin, int64_t end,
             double *) {
  for (int64_t i = begin; i < end; ++i)
    apply(static_cast<const uint64_t *>(slots), i);
}

void cpuEntry(Launch *launch, const uint64_t *slots) {
  costate_range(launch, cpuBody, slots, static_cast<int64_t>(slots[Extent]),
                nullptr, 0, 0, 0, 0, 1);
}

//===-- On GPUs -----------------------------------------------------------===//

void gpuEntry(Launch *launch, const uint64_t *slots) {
  uint64_t words[wordCount];
  std::copy_n(slots, slotCount, words + firstOwnWord);
  costate_device_run(launch, 0, words, static_cast<int64_t>(slots[Extent]));
}

/// Without a worker: this is a GPU. The same code is on both sides of the
/// border, as it is for compiled kernels.
void entry(Launch *launch, Worker *worker, const uint64_t *slots) {
  worker ? cpuEntry(launch, slots) : gpuEntry(launch, slots);
}

void simtFunction(const uint64_t *words, int64_t thread, int64_t threads,
                  std::byte *) {
  auto workItems = static_cast<int64_t>(words[WorkItemsWord]);
  for (int64_t i = thread; i < workItems; i += threads)
    apply(words + firstOwnWord, i);
}

std::string ptx() {
  return cuda::stridedKernel("affine", wordCount,
                             {{"%count", WorkItemsWord},
                              {"%y", firstOwnWord + Base},
                              {"%factor", firstOwnWord + Factor},
                              {"%term", firstOwnWord + Term}},
                             R"(
  shl.b64 %place, %i, 3;
  add.u64 %place, %y, %place;
  ld.u64 %value, [%place];
  mul.lo.u64 %value, %value, %factor;
  add.u64 %value, %value, %term;
  st.u64 [%place], %value;
)");
}

static_assert(firstOwnWord == 12, "TestKernels.spvasm has places of words");
constexpr unsigned char spirv[] = {
#include "runtime/vulkan/TestKernels.inc"
};

std::shared_ptr<gpu::DeviceCode> deviceCode(std::string image) {
  auto code = std::make_shared<gpu::DeviceCode>();
  code->image = std::move(image);
  code->addresses["affine"] = reinterpret_cast<void *>(simtFunction);
  gpu::DeviceFunction function;
  function.symbol = "affine";
  function.words = wordCount;
  code->functions = {function};
  return code;
}

//===-- Devices -----------------------------------------------------------===//

void fakeAffine(std::span<const uint64_t> words) {
  simtFunction(words.data(), 0, 1, nullptr);
}

void fakeFill(std::span<const uint64_t> words) {
  std::fill_n(reinterpret_cast<uint64_t *>(words[0]), words[1], words[2]);
}

/// One lives at a time, longer than the devices on it.
streams::FakeGpu &fakeFor(const streams::Fake &kind) {
  static std::string name;
  static std::unique_ptr<streams::FakeGpu> fake;
  if (std::exchange(name, kind.name) != kind.name) {
    fake = nullptr;
    fake = kind.make();
  }
  fake->kernels["affine$kernel"].body = fakeAffine;
  fake->kernels["fill$kernel"].body = fakeFill;
  return *fake;
}

/// A driver on an API that queues work as a GPU does.
Result<std::shared_ptr<Device>> openFake(const streams::Fake &kind,
                                         size_t limit) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  auto driver = kind.open(fakeFor(kind));
  if (!driver)
    return driver.error();
  std::string chip = (*driver)->properties().chip;
  return gpu::openGpu("fake" + kind.name, chip, *driver,
                      {.memoryLimit = limit, .validate = true});
}

Result<std::shared_ptr<Device>> openCuda(size_t limit) {
  auto driver = cuda::openCuda(0);
  if (!driver)
    return driver.error();
  std::string chip = (*driver)->properties().chip;
  return gpu::openGpu("cuda", chip, *driver, {.memoryLimit = limit});
}

Result<std::shared_ptr<Device>> openVulkan(size_t limit) {
  auto driver = vulkan::openVulkan("", {.validate = true});
  if (!driver)
    return driver.error();
  std::string chip = (*driver)->properties().chip;
  return gpu::openGpu("vulkan", chip, *driver,
                      {.memoryLimit = limit, .validate = true});
}

struct Opener {
  std::string name;
  std::function<Result<std::shared_ptr<Device>>(size_t limit)> open;
};

const Opener devices[] = {
    {"cpu", [](size_t limit) { return openCpu(2, limit); }},
    {"simt",
     [](size_t limit) { return openSimt(2, limit, {.validate = true}); }},
    {"cuda", openCuda},
    {"vulkan", openVulkan}};

std::vector<Opener> makeOpeners() {
  std::vector<Opener> all(std::begin(devices), std::end(devices));
  for (const streams::Fake &kind : streams::fakes)
    all.push_back({"fake" + kind.name,
                   [&](size_t limit) { return openFake(kind, limit); }});
  return all;
}

const std::vector<Opener> &openers() {
  static const std::vector<Opener> all = makeOpeners();
  return all;
}

KernelCode affineFor(std::string image) {
  KernelCode code;
  code.name = "affine";
  code.entry = entry;
  code.sites = {Loc("affine.cpp", 1, 1)};
  code.device = deviceCode(std::move(image));
  return code;
}

} // namespace

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Opener &opener : openers())
    all.push_back(opener.name);
  return all;
}

Result<std::shared_ptr<Device>> open(const std::string &name, size_t limit) {
  return std::ranges::find(openers(), name, &Opener::name)->open(limit);
}

const KernelCode &affine(const std::string &device) {
  static const KernelCode ofCuda = affineFor(ptx());
  static const KernelCode ofVulkan =
      affineFor({std::begin(spirv), std::end(spirv)});
  static const KernelCode ofHip = affineFor(hip::ElfHead().text());
  return device == "vulkan" ? ofVulkan : device == "fakehip" ? ofHip : ofCuda;
}

std::vector<uint64_t> affineArguments(Buffer y, uint64_t factor,
                                      uint64_t term) {
  return {reinterpret_cast<uint64_t>(y.address), y.bytes / 8, factor, term};
}

} // namespace costate::runtime::conformance
