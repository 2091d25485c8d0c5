#include "runtime/hip/HostAmd.h"

#include "base/AmdChip.h"
#include "base/AmdHost.h"
#include "base/DeviceSymbol.h"
#include "runtime/simt/Callbacks.h"
#include "runtime/simt/HostedDriver.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

namespace costate::runtime::hip {
namespace {

/// What the threads of a block share, on all chips.
constexpr size_t sharedBytes = 64 << 10;

const AmdHostCalls calls = {
    [] { return costate_device_block_threads(); },
    costate_device_block_barrier,
    simt::together,
};

/// A shared library whose file is gone. Each needs a name of its own.
class Library {
public:
  static Result<std::shared_ptr<Library>> load(const std::string &image) {
    std::string path =
        std::filesystem::temp_directory_path() / "costate-XXXXXX";
    int file = mkstemp(path.data());
    bool isWritten = file >= 0 && write(file, image.data(), image.size()) ==
                                      static_cast<ssize_t>(image.size());
    void *handle =
        isWritten ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    std::string reason = handle      ? ""
                         : isWritten ? dlerror()
                                     : "`" + path + "` cannot be written";
    if (file >= 0) {
      close(file);
      unlink(path.c_str());
    }
    if (!handle)
      return Failure{ErrorCode::Internal, "the host loads no code: " + reason};
    auto library = std::make_shared<Library>();
    library->handle = handle;
    if (auto *place = static_cast<const AmdHostCalls **>(
            dlsym(handle, "costate_amd_calls")))
      *place = &calls;
    return library;
  }
  ~Library() {
    if (handle)
      dlclose(handle);
  }

  void *entry(const std::string &symbol) const {
    return dlsym(handle, deviceSymbol(symbol).c_str());
  }

private:
  void *handle = nullptr;
};

struct Code final : gpu::Module {
  std::shared_ptr<Library> library;
  std::shared_ptr<gpu::Module> ofHost;
};

simt::Options optionsOf(int threads, const GpuShape &shape) {
  simt::Options options;
  options.threads = threads;
  options.lanes = shape.lanes;
  options.sharedPerBlock = options.sharedPerMultiprocessor = sharedBytes;
  options.sharedOfChip = 0;
  return options;
}

class HostAmd final : public simt::HostedDriver {
public:
  HostAmd(int threads, const std::string &chip, const GpuShape &shape)
      : HostedDriver(optionsOf(threads, shape)) {
    info.name = "amd-host";
    info.chip = chip + std::string(amdOnHost);
    info.shape = shape;
  }

  Result<std::shared_ptr<gpu::Module>>
  load(const gpu::DeviceCode &code) override {
    auto library = Library::load(code.image);
    if (!library)
      return library.error();
    auto made = std::make_shared<Code>();
    made->library = std::move(*library);
    auto loaded = loadEntries(
        code,
        [&](const std::string &symbol) { return made->library->entry(symbol); },
        /*areCollective=*/true);
    if (!loaded)
      return loaded.error();
    made->ofHost = std::move(*loaded);
    return std::shared_ptr<gpu::Module>(std::move(made));
  }
  Result<> prepare(gpu::Module &module, const std::string &symbol,
                   size_t bytes) override {
    return host->prepare(ofHost(module), symbol, bytes);
  }
  Result<> launch(gpu::Module &module, const std::string &symbol,
                  gpu::Grid grid, std::span<const uint64_t> words,
                  size_t bytes) override {
    return host->launch(ofHost(module), symbol, grid, words, bytes);
  }
  Result<int64_t> residentBlocks(gpu::Module &module, const std::string &symbol,
                                 int blockThreads, size_t bytes) override {
    return host->residentBlocks(ofHost(module), symbol, blockThreads, bytes);
  }

private:
  static gpu::Module &ofHost(gpu::Module &module) {
    return *static_cast<Code &>(module).ofHost;
  }
};

} // namespace

Result<std::shared_ptr<gpu::Driver>> createHostAmd(int threads,
                                                   const std::string &chip) {
  std::optional<GpuShape> shape = parseAmdChip(chip);
  if (!shape)
    return Failure{ErrorCode::NoDevice, "there is no AMD chip `" + chip + "`"};
  return std::shared_ptr<gpu::Driver>(
      std::make_shared<HostAmd>(threads, chip, *shape));
}

} // namespace costate::runtime::hip
