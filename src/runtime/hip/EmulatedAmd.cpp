#include "runtime/hip/EmulatedAmd.h"

#include "base/AmdChip.h"
#include "base/DeviceSymbol.h"
#include "runtime/simt/HostedDriver.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <set>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace costate::runtime::hip {
namespace {

/// What the threads of a block share, on all chips.
constexpr size_t sharedBytes = 64 << 10;

/// The process, which answers each line with one.
class Emulator {
public:
  static Result<std::shared_ptr<Emulator>> start(const std::string &command) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
      return Failure{ErrorCode::NoDevice, "there are no pipes"};
    auto emulator = std::make_shared<Emulator>();
    emulator->process = fork();
    if (emulator->process == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      std::string run = "exec " + command;
      execl("/bin/sh", "sh", "-c", run.c_str(), nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    emulator->requests = fdopen(to[1], "w");
    emulator->answers = fdopen(from[0], "r");
    return emulator;
  }
  ~Emulator() {
    if (requests)
      fclose(requests);
    if (answers)
      fclose(answers);
    if (process > 0)
      waitpid(process, nullptr, 0);
  }

  /// What follows `ok`.
  Result<std::string> ask(const std::string &line) {
    std::lock_guard lock(mutex);
    fprintf(requests, "%s\n", line.c_str());
    fflush(requests);
    char *text = nullptr;
    size_t room = 0;
    ssize_t length = getline(&text, &room, answers);
    std::string answer(text ? text : "", length > 0 ? length - 1 : 0);
    free(text);
    if (answer.starts_with("ok"))
      return answer.substr(2);
    return Failure{ErrorCode::Internal,
                   "the emulator of AMD GPUs: " +
                       (answer.empty() ? "it has ended" : answer)};
  }

private:
  pid_t process = -1;
  FILE *requests = nullptr, *answers = nullptr;
  std::mutex mutex;
};

struct Code final : gpu::Module {
  std::string number;
  std::set<std::string> kernels;
};

class EmulatedAmd final : public simt::HostedDriver {
public:
  EmulatedAmd(std::shared_ptr<Emulator> emulator, const std::string &chip,
              const GpuShape &shape)
      : HostedDriver(simt::Options()), emulator(std::move(emulator)) {
    info.name = "amd-emulator";
    info.chip = chip;
    info.shape = shape;
    info.multiprocessors = 1;
    info.residentThreads = 256;
    info.sharedPerBlock = info.sharedPerMultiprocessor = sharedBytes;
    info.blockThreads = 1024;
    info.blocksProgress = false;
  }

  Result<std::shared_ptr<gpu::Module>>
  load(const gpu::DeviceCode &code) override {
    std::string path =
        std::filesystem::temp_directory_path() / "costate-XXXXXX";
    int file = mkstemp(path.data());
    bool isWritten =
        file >= 0 && write(file, code.image.data(), code.image.size()) ==
                         static_cast<ssize_t>(code.image.size());
    Result<std::string> answer = Failure{ErrorCode::Internal, path};
    if (isWritten)
      answer = emulator->ask("load " + path);
    if (file >= 0) {
      close(file);
      unlink(path.c_str());
    }
    if (!answer)
      return answer.error();
    auto made = std::make_shared<Code>();
    std::istringstream names(*answer);
    names >> made->number;
    for (std::string name; names >> name;)
      made->kernels.insert(name);
    return std::shared_ptr<gpu::Module>(std::move(made));
  }
  Result<> prepare(gpu::Module &module, const std::string &symbol,
                   size_t) override {
    if (static_cast<Code &>(module).kernels.contains(deviceSymbol(symbol)))
      return {};
    return Failure{ErrorCode::Internal, "there is no kernel `" + symbol + "`"};
  }
  Result<> launch(gpu::Module &module, const std::string &symbol,
                  gpu::Grid grid, std::span<const uint64_t> words,
                  size_t bytes) override {
    if (grid.blocks <= 0)
      return {};
    ++counters().launches;
    std::ostringstream line;
    line << "launch " << static_cast<Code &>(module).number << ' '
         << deviceSymbol(symbol) << ' ' << grid.blocks << ' '
         << grid.blockThreads << ' ' << bytes;
    for (uint64_t word : words)
      line << ' ' << word;
    Result<std::string> done = emulator->ask(line.str());
    return done ? Result<>() : done.error();
  }
  Result<int64_t> residentBlocks(gpu::Module &, const std::string &, int,
                                 size_t) override {
    return 2;
  }

  Result<> beginCapture() override {
    return Failure{ErrorCode::CannotCapture, "the emulator keeps no launches"};
  }

private:
  const std::shared_ptr<Emulator> emulator;
};

} // namespace

Result<std::shared_ptr<gpu::Driver>>
createEmulatedAmd(const std::string &chip) {
  std::optional<GpuShape> shape = parseAmdChip(chip);
  const char *command = std::getenv("COSTATE_AMD_EMULATOR");
  if (!shape || !command)
    return Failure{ErrorCode::NoDevice,
                   shape ? "COSTATE_AMD_EMULATOR names no command"
                         : "there is no AMD chip `" + chip + "`"};
  auto emulator = Emulator::start(command);
  if (!emulator)
    return emulator.error();
  if (auto known = (*emulator)->ask("chip " + chip); !known)
    return Failure{ErrorCode::NoDevice, known.error().text};
  return std::shared_ptr<gpu::Driver>(
      std::make_shared<EmulatedAmd>(*emulator, chip, *shape));
}

} // namespace costate::runtime::hip
