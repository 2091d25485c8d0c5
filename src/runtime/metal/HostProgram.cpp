#include "runtime/metal/HostProgram.h"

#include "base/MetalChip.h"
#include "runtime/metal/shim/HostCalls.h"
#include "runtime/simt/Callbacks.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>
#include <vector>

namespace costate::runtime::metal {
namespace {

const char standardLibrary[] = {
#include "runtime/metal/metal_stdlib.inc"
    0};
const char calls[] = {
#include "runtime/metal/HostCalls.h.inc"
    0};

/// What follows the program: how a launch of the simulated GPU calls a kernel.
const char entryText[] = R"(
static uint costate_host_locks[costate_lock_count];
#define COSTATE_HOST_ENTRY(name, number)                                       \
  extern "C" void costate_host_entry_##number(const ulong *words, long at,     \
                                              long all, uchar *memory) {       \
    long each = costate_host->blockThreads();                                  \
    costate_launch launch = {ulong(words), ulong(costate_host_locks)};         \
    name(launch, memory, uint(at % each), uint(at / each), uint(all / each),   \
         uint(each));                                                          \
  }
)";

/// A folder that is gone when this dies.
class Folder {
public:
  Folder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "costate-metal-XXXXXX");
    path = mkdtemp(pattern.data()) ? pattern : "";
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder &) = delete;
  void write(const char *name, const std::string &text) const {
    std::ofstream(path / name) << text;
  }
  std::string read(const char *name) const {
    std::stringstream text;
    text << std::ifstream(path / name).rdbuf();
    return text.str();
  }

  std::filesystem::path path;
};

std::vector<std::string> kernelsOf(const std::string &text) {
  const std::string head = "\nkernel void ";
  std::vector<std::string> names;
  for (size_t at = text.find(head); at != text.npos; at = text.find(head, at)) {
    at += head.size();
    names.push_back(text.substr(at, text.find('(', at) - at));
  }
  return names;
}

std::string compilerName() {
  const char *chosen = std::getenv("COSTATE_METAL_HOST_COMPILER");
  return chosen && *chosen ? chosen : "clang++-22";
}

std::string entryName(size_t number) {
  return "costate_host_entry_" + std::to_string(number);
}

std::string withEntries(const std::string &text,
                        const std::vector<std::string> &kernels) {
  std::string all = text + entryText;
  for (size_t k = 0; k < kernels.size(); ++k)
    all +=
        "COSTATE_HOST_ENTRY(" + kernels[k] + ", " + std::to_string(k) + ")\n";
  return all;
}

Result<> runCompiler(const Folder &folder) {
  // Its numbers are those of the text: nothing is contracted or reordered.
  std::string command =
      "cd '" + folder.path.string() + "' && " + compilerName() +
      " -x c++ -std=c++17 -O0 -march=native -fPIC -shared -ffp-contract=off"
      " -fno-strict-aliasing -fwrapv -fno-exceptions -fno-rtti -w -I."
      " program.metal -o program.so > log 2>&1";
  if (std::system(command.c_str()) == 0)
    return {};
  return Failure{ErrorCode::Internal,
                 "`" + compilerName() +
                     "` does not compile the text of a kernel for Metal:\n" +
                     folder.read("log").substr(0, 2000)};
}

const CostateHostCalls hostCalls = {
    [] { return long(costate_device_block_threads()); },
    costate_device_block_barrier,
    [](long line) {
      return static_cast<unsigned>(costate_device_warp_active_mask(line));
    },
    [](unsigned long value) -> unsigned long {
      return costate_device_warp_max(value);
    },
    [](unsigned here, unsigned value, int lane, long line) {
      return static_cast<unsigned>(costate_device_warp_shuffle(
          static_cast<int>(here), static_cast<int>(value), lane, line));
    },
    [](unsigned here, unsigned value, int lanes, long line) {
      return static_cast<unsigned>(costate_device_warp_shuffle_down(
          static_cast<int>(here), static_cast<int>(value), lanes, line));
    },
    [](unsigned here, bool holds, long line) {
      return static_cast<unsigned>(
          costate_device_warp_ballot(static_cast<int>(here), holds, line));
    }};

} // namespace

Result<std::shared_ptr<HostProgram>>
HostProgram::compile(const std::string &text) {
  Folder folder;
  if (folder.path.empty())
    return Failure{ErrorCode::Internal,
                   "there is no place for temporary files"};
  std::vector<std::string> kernels = kernelsOf(text);
  folder.write("metal_stdlib", standardLibrary);
  folder.write("HostCalls.h", calls);
  folder.write("program.metal", withEntries(text, kernels));
  if (Result<> done = runCompiler(folder); !done)
    return done.error();
  std::shared_ptr<HostProgram> program(new HostProgram);
  program->ownBytes = metalBlockBytes(text);
  program->library =
      dlopen((folder.path / "program.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!program->library)
    return Failure{ErrorCode::Internal, dlerror()};
  for (size_t k = 0; k < kernels.size(); ++k)
    program->entries[kernels[k]] =
        dlsym(program->library, entryName(k).c_str());
  if (auto *connect = reinterpret_cast<void (*)(const CostateHostCalls *)>(
          dlsym(program->library, "costate_host_connect")))
    connect(&hostCalls);
  return program;
}

HostProgram::~HostProgram() {
  if (library)
    dlclose(library);
}

void *HostProgram::entry(const std::string &kernel) const {
  auto found = entries.find(kernel);
  return found == entries.end() ? nullptr : found->second;
}

} // namespace costate::runtime::metal
