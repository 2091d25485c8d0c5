#include "compiler/targets/amd/Link.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace costate::compiler {
namespace {

/// LLD has one state, and none after it has failed badly.
std::mutex stateMutex;
bool isBroken = false;

Failure failure(const std::string &reason) {
  return {ErrorCode::Internal, "code for AMD GPUs cannot be linked: " + reason};
}

Result<> write(const std::string &path, const std::string &bytes) {
  std::error_code error;
  raw_fd_ostream stream(path, error);
  if (!error) {
    stream << bytes;
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  if (error)
    return failure("`" + path + "` cannot be written: " + error.message());
  return {};
}

Result<std::string> read(const std::string &path) {
  auto buffer = MemoryBuffer::getFile(path, false, false);
  if (!buffer)
    return failure("`" + path +
                   "` cannot be read: " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

Result<> run(ArrayRef<const char *> arguments) {
  std::lock_guard lock(stateMutex);
  if (isBroken)
    return failure("the linker has failed before");
  std::string said;
  raw_string_ostream stream(said);
  lld::Result result =
      lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  isBroken = !result.canRunAgain;
  if (result.retCode != 0)
    return failure(said);
  return {};
}

/// LLD reads and writes files.
Result<std::string> linkShared(const std::string &object, const char *policy) {
  SmallString<128> folder;
  if (std::error_code error = sys::fs::createUniqueDirectory("costate", folder))
    return failure("there is no folder for files: " + error.message());
  auto clean =
      make_scope_exit([&] { sys::fs::remove_directories(folder, true); });
  std::string from = folder.str().str() + "/kernels.o";
  std::string to = folder.str().str() + "/kernels.hsaco";
  if (Result<> written = write(from, object); !written)
    return written.error();
  const char *arguments[] = {"ld.lld",      "-shared",         policy,
                             "--threads=1", "--build-id=none", from.c_str(),
                             "-o",          to.c_str()};
  if (Result<> linked = run(arguments); !linked)
    return linked.error();
  return read(to);
}

} // namespace

Result<std::string> linkCodeObject(const std::string &object) {
  return linkShared(object, "--no-undefined");
}

Result<std::string> linkForHost(const std::string &object) {
  return linkShared(object, "--unresolved-symbols=ignore-all");
}

} // namespace costate::compiler
