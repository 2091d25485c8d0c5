#pragma once
/// SPIR-V that is loaded, and its kernels.

#include "runtime/vulkan/Commands.h"
#include "runtime/vulkan/VulkanDriver.h"

#include <map>
#include <set>

namespace costate::runtime::vulkan {

class Module final : public gpu::Module {
public:
  /// `pool`: for tables, which the host writes.
  static Result<std::shared_ptr<Module>> load(std::shared_ptr<Session> session,
                                              std::shared_ptr<Pool> pool,
                                              const CodeStore &store,
                                              const gpu::DeviceCode &code);
  ~Module() override;

  /// The kernel of `symbol` for blocks of so many threads and bytes; made when
  /// it is first asked for.
  Result<std::shared_ptr<Pipeline>> find(const std::string &symbol,
                                         int blockThreads, size_t sharedBytes);

private:
  struct Wanted {
    std::string symbol;
    uint32_t threads, sharedWords;
    auto operator<=>(const Wanted &) const = default;
  };

  Module(std::shared_ptr<Session> session, const CodeStore &store)
      : session(std::move(session)), store(store) {}
  Status create(const std::string &image);
  Status make(const Wanted &wanted, VkPipeline &pipeline);
  Failure refusal(Status status, const std::string &symbol);
  void keepCode();

  std::shared_ptr<Session> session;
  CodeStore store;
  std::string key; ///< in the store
  VkShaderModule shader = VK_NULL_HANDLE;
  VkPipelineCache cache = VK_NULL_HANDLE;
  size_t keptBytes = 0;
  std::set<std::string> entries, adding; ///< kernels; those that add up
  std::shared_ptr<const Tables> tables;
  std::mutex mutex;
  std::map<Wanted, std::shared_ptr<Pipeline>> made;
};

} // namespace costate::runtime::vulkan
