#include "runtime/vulkan/Module.h"

#include "base/DeviceSymbol.h"
#include "base/DeviceWords.h"
#include "base/Fork.h"
#include "base/VulkanTables.h"
#include "runtime/vulkan/Occupancy.h"

#include <algorithm>
#include <cstring>

namespace costate::runtime::vulkan {
namespace {

using Words = std::vector<uint32_t>;

/// Of a header, as SPIR-V defines it.
constexpr uint32_t magic = 0x07230203;
constexpr size_t headerWords = 5;
constexpr uint32_t string = 7, entryPoint = 15;
/// A cache that holds nothing is as large.
constexpr size_t emptyCacheBytes = sizeof(VkPipelineCacheHeaderVersionOne);

Words wordsOf(const std::string &image) {
  Words words(image.size() / sizeof(uint32_t));
  if (!words.empty())
    std::memcpy(words.data(), image.data(), words.size() * sizeof(uint32_t));
  return words;
}

struct Contents {
  std::set<std::string> entries;
  std::string tables;
};

/// What SPIR-V tells; none if this is something else.
std::optional<Contents> contentsOf(const Words &words) {
  Contents found;
  if (words.size() < headerWords || words.front() != magic)
    return std::nullopt;
  for (size_t at = headerWords; at < words.size();) {
    size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at)
      return std::nullopt;
    auto textAt = [&](size_t first) {
      auto *text = reinterpret_cast<const char *>(&words[at + first]);
      return std::string(text, strnlen(text, 4 * (length - first)));
    };
    uint32_t opcode = words[at] & 0xffff;
    // Its model, its function, its name.
    if (opcode == entryPoint && length > 3)
      found.entries.insert(textAt(3));
    if (opcode == string && length > 2)
      found.tables += vulkanTables(textAt(2)).value_or("");
    at += length;
  }
  return found;
}

} // namespace

Result<std::shared_ptr<Module>> Module::load(std::shared_ptr<Session> session,
                                             std::shared_ptr<Pool> pool,
                                             const CodeStore &store,
                                             const gpu::DeviceCode &code) {
  std::shared_ptr<Module> module(new Module(std::move(session), store));
  auto contents = contentsOf(wordsOf(code.image));
  if (!contents)
    return Failure{ErrorCode::Internal, "the GPU fails to load code: " +
                                            std::to_string(code.image.size()) +
                                            " bytes that are no SPIR-V"};
  module->entries = std::move(contents->entries);
  auto tables =
      Tables::make(*module->session, std::move(pool), contents->tables);
  if (!tables)
    return tables.error();
  module->tables = std::move(*tables);
  for (const gpu::DeviceFunction &function : code.functions)
    if (function.addsUp || function.sums)
      module->adding.insert({function.symbol, function.measure,
                             function.sharedSymbol, function.drainSymbol,
                             function.sortSymbol});
  if (Status status = module->create(code.image))
    return module->session->failure(status, "load code");
  return module;
}

Status Module::create(const std::string &image) {
  const Api &api = session->api();
  Words words = wordsOf(image);
  VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = words.size() * sizeof(uint32_t);
  info.pCode = words.data();
  if (Status status =
          api.vkCreateShaderModule(session->device(), &info, nullptr, &shader))
    return status;
  key = session->adapter().driver + '\n' + image;
  std::optional<std::string> kept;
  if (store.find)
    kept = store.find(key);
  VkPipelineCacheCreateInfo known{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  if (kept) {
    known.initialDataSize = keptBytes = kept->size();
    known.pInitialData = kept->data();
  }
  return api.vkCreatePipelineCache(session->device(), &known, nullptr, &cache);
}

Module::~Module() {
  ForeignWork work;
  const Api &api = session->api();
  api.vkDestroyPipelineCache(session->device(), cache, nullptr);
  api.vkDestroyShaderModule(session->device(), shader, nullptr);
}

Status Module::make(const Wanted &wanted, VkPipeline &pipeline) {
  const Adapter &adapter = session->adapter();
  std::string name = deviceSymbol(wanted.symbol);
  VkSpecializationMapEntry entries[] = {{0, 0, sizeof(uint32_t)},
                                        {1, 4, sizeof(uint32_t)}};
  uint32_t values[] = {wanted.threads, wanted.sharedWords};
  VkSpecializationInfo sizes{2, entries, sizeof values, values};
  VkComputePipelineCreateInfo info{
      VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.flags = adapter.tellsStatistics
                   ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR
                   : 0;
  info.layout = session->layout();
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader;
  info.stage.pName = name.c_str();
  info.stage.pSpecializationInfo = &sizes;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo lanes{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  lanes.requiredSubgroupSize = adapter.askedSubgroup;
  if (adapter.askedSubgroup)
    info.stage.pNext = &lanes;
  bool isFull =
      wanted.threads % static_cast<uint32_t>(adapter.features.subgroup) == 0;
  if (adapter.features.fullSubgroups && isFull)
    info.stage.flags =
        VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  return session->api().vkCreateComputePipelines(session->device(), cache, 1,
                                                 &info, nullptr, &pipeline);
}

/// Now, as programs end without saying so.
void Module::keepCode() {
  if (!store.put)
    return;
  const Api &api = session->api();
  size_t bytes = 0;
  Status status =
      api.vkGetPipelineCacheData(session->device(), cache, &bytes, nullptr);
  if (status || bytes <= std::max(keptBytes, emptyCacheBytes))
    return;
  std::string data(bytes, 0);
  status =
      api.vkGetPipelineCacheData(session->device(), cache, &bytes, data.data());
  if (status)
    return;
  data.resize(bytes);
  store.put(key, data);
  keptBytes = bytes;
}

/// Drivers do not say what is too much for them.
Failure Module::refusal(Status status, const std::string &symbol) {
  std::string doing = "assemble the kernel `" + symbol + "`";
  if (status != VK_ERROR_UNKNOWN)
    return session->failure(status, doing);
  return {ErrorCode::BadKernel,
          "the driver of the GPU fails to " + doing +
              ": VK_ERROR_UNKNOWN; the kernel may be too large for it: make "
              "its `Local` arrays smaller, or split it"};
}

Result<std::shared_ptr<Pipeline>>
Module::find(const std::string &symbol, int blockThreads, size_t sharedBytes) {
  const gpu::Properties &gpu = session->adapter().properties;
  if (adding.contains(symbol))
    sharedBytes = std::max(sharedBytes, sumMemory);
  if (blockThreads < 1 || blockThreads > gpu.blockThreads ||
      sharedBytes > gpu.sharedPerBlock)
    return session->failure(
        VK_ERROR_FEATURE_NOT_PRESENT,
        "run `" + symbol + "` in blocks of " + std::to_string(blockThreads) +
            " threads that share " + std::to_string(sharedBytes) + " bytes");
  Wanted wanted{
      symbol, static_cast<uint32_t>(blockThreads),
      static_cast<uint32_t>(std::max<size_t>(1, (sharedBytes + 3) / 4))};
  std::lock_guard lock(mutex);
  std::shared_ptr<Pipeline> &pipeline = made[wanted];
  if (pipeline)
    return pipeline;
  if (!entries.contains(deviceSymbol(symbol)))
    return session->failure(VK_ERROR_INITIALIZATION_FAILED,
                            "find the kernel `" + symbol + "`");
  auto fresh = std::make_shared<Pipeline>(session);
  if (Status status = make(wanted, fresh->handle))
    return refusal(status, symbol);
  fresh->registers = registersOf(*session, fresh->handle);
  fresh->tables = tables;
  fresh->loopCell = session->loops().cellOf(symbol);
  keepCode();
  pipeline = std::move(fresh);
  return pipeline;
}

} // namespace costate::runtime::vulkan
