#pragma once
/// HIP without a GPU, for tests: a library by the names of its functions, as
/// one of its versions has them.

#include "runtime/hip/CodeObject.h"
#include "runtime/hip/HipApi.h"
#include "runtime/streams/FakeGpu.h"

namespace costate::runtime::hip {

/// The head of a code object, as far as HIP looks at it.
struct ElfHead {
  char magic[4] = {'\x7f', 'E', 'L', 'F'};
  unsigned char kind[12] = {2, 1, 1, 64};
  uint16_t type = 3, machine = 224; ///< of AMD's GPUs
  uint32_t version = 1;
  uint64_t entry = 0, programs = 0, sections = 64;
  uint32_t chip = 0x4c; ///< gfx942, in the lowest byte
  uint16_t bytes = 64, programBytes = 0, programCount = 0;
  uint16_t sectionBytes = 64, sectionCount = 0, names = 0;

  std::string text() const {
    return {reinterpret_cast<const char *>(this), sizeof *this};
  }
};
static_assert(sizeof(ElfHead) == 64);

/// One at a time: the newest. Safe to use from several threads.
class FakeHip final : public FakeGpu {
public:
  FakeHip();

  /// With what has been found by now.
  const HipApi &api() const override { return hip; }
  /// Looks all functions up, as in a library that is loaded.
  Result<> load() { return findAll(lookup(), hip); }
  Lookup lookup() {
    return [this](const char *name) {
      return missing.contains(name) ? nullptr : symbols[name];
    };
  }

  std::set<std::string> missing; ///< functions, by HIP's names
  std::string chip = "gfx942:sramecc+:xnack-";
  size_t chipPlace = 1160; ///< in hipDeviceProp_t
  uint32_t chipNumber = 0x4c;
  int lanes = 64;
  const char *lastImage = nullptr; ///< that was loaded, where HIP reads it
  /// Kernels of code objects, which are not run: what they were given.
  struct Ran {
    std::string kernel;
    std::vector<uint64_t> words;
  };
  std::vector<Ran> ran;
  size_t wrongWords = 0; ///< launches with others than the kernel takes
  DeviceNumber current = 0;
  size_t onWrongDevice = 0; ///< calls that needed another current device

  static constexpr unsigned mostBlockBytes = 64 << 10;
  /// What HIP itself adds to arguments, if a kernel asks for the size of its
  /// grid or blocks.
  static constexpr size_t hiddenBytes = 256;
  static constexpr Status invalidImage = 200, noBinaryForGpu = 209,
                          invalidPitch = 12, invalidConfiguration = 9;

private:
  static FakeHip &self() { return static_cast<FakeHip &>(*fake); }
  void isCalled(const std::string &function) override;
  template <class Signature> void add(const char *name, Signature function) {
    symbols[name] = reinterpret_cast<void *>(function);
  }
  void take(const std::string &name, const KernelDescriptor &descriptor);
  size_t takenBytes(const std::string &name) const {
    auto found = descriptors.find(name);
    return found == descriptors.end() ? 0 : found->second.blockBytes;
  }
  void addShared();
  void addDevice();
  void addErrors();
  void addCode();
  void addCopies();

  std::map<std::string, void *> symbols;
  std::map<std::string, KernelDescriptor> descriptors;
  HipApi hip;
};

inline FakeHip::FakeHip() {
  hip.usesPools = true;
  addShared();
  addDevice();
  addErrors();
  addCode();
  addCopies();
  (void)load();
}

inline void FakeHip::isCalled(const std::string &function) {
  static const std::set<std::string> questions = {
      "init",       "driverVersion", "deviceCount",  "device",
      "properties", "deviceName",    "deviceMemory", "attribute"};
  onWrongDevice += current != 0 && !questions.contains(function);
}

inline void FakeHip::addShared() {
  Functions shared = makeLocking();
  std::vector<Symbol> names = usedSymbols();
  size_t next = 0;
#define COSTATE_HIP_FAKE(member, ...) add(names[next++].name, shared.member);
  COSTATE_STREAM_FUNCTIONS(COSTATE_HIP_FAKE)
#undef COSTATE_HIP_FAKE
}

inline void FakeHip::addDevice() {
  add(
      "hipDeviceGetAttribute", +[](int *value, int which, DeviceNumber) {
        return self().perform("attribute", [&]() -> Status {
          switch (static_cast<DeviceAttribute>(which)) {
          case DeviceAttribute::Lanes:
            *value = self().lanes;
            return success;
          case DeviceAttribute::HasPools:
            *value = self().hasPools;
            return success;
          case DeviceAttribute::LargestBlock:
            *value = 1024;
            return success;
          case DeviceAttribute::LargestSharedOfBlock:
          case DeviceAttribute::SharedOfMultiprocessor:
            *value = mostBlockBytes;
            return success;
          case DeviceAttribute::L2Bytes:
          case DeviceAttribute::ThreadsOfMultiprocessor:
          case DeviceAttribute::Multiprocessors:
            *value = 64;
            return success;
          }
          return invalidValue;
        });
      });
  add(
      "hipGetDevice", +[](DeviceNumber *device) {
        *device = self().current;
        return success;
      });
  add(
      "hipSetDevice", +[](DeviceNumber device) {
        self().current = device;
        return success;
      });
  auto *properties = +[](void *all, DeviceNumber) {
    return self().perform("properties", [&] {
      std::memcpy(static_cast<char *>(all) + self().chipPlace,
                  self().chip.c_str(), self().chip.size() + 1);
      return success;
    });
  };
  add("hipGetDevicePropertiesR0600", properties);
  add("hipGetDeviceProperties", properties);
}

inline void FakeHip::addErrors() {
  add(
      "hipGetErrorName", +[](Status status) {
        return status == noBinaryForGpu ? "hipErrorNoBinaryForGpu"
                                        : "hipErrorFake";
      });
  add("hipGetErrorString", +[](Status) { return "a fake error"; });
  add(
      "hipGetLastError",
      +[] { return std::exchange(fake->lastError, success); });
}

inline void FakeHip::addCode() {
  add(
      "hipModuleLoadData", +[](Code *code, const void *image) {
        return self().perform("loadCode", [&]() -> Status {
          self().lastImage = static_cast<const char *>(image);
          ElfHead head, expected;
          std::memcpy(&head, image, sizeof head);
          if (std::memcmp(&head, &expected, 5) ||
              head.machine != expected.machine)
            return invalidImage;
          if ((head.chip & 0xff) != self().chipNumber)
            return noBinaryForGpu;
          return self().FakeGpu::load(code, image,
                                      head.sections + head.sectionBytes *
                                                          head.sectionCount);
        });
      });
  static Functions shared = makeLocking();
  add(
      "hipModuleGetFunction",
      +[](Function *function, Code code, const char *name) {
        if (auto descriptor = CodeObject(code->text).descriptor(name))
          self().take(name, *descriptor);
        Status status = shared.function(function, code, name);
        if (status == success)
          (*function)->sharedLimit = mostBlockBytes - self().takenBytes(name);
        return status;
      });
  add(
      "hipModuleLaunchKernel",
      +[](Function function, unsigned x, unsigned y, unsigned z,
          unsigned threads, unsigned ys, unsigned zs, unsigned bytes,
          Stream stream, void **arguments, void **extra) {
        if (uint64_t(x) * threads > UINT32_MAX)
          return self().perform("launchKernel",
                                [] { return invalidConfiguration; });
        return shared.launchKernel(function, x, y, z, threads, ys, zs, bytes,
                                   stream, arguments, extra);
      });
}

/// A kernel of a code object that is loaded.
inline void FakeHip::take(const std::string &name,
                          const KernelDescriptor &descriptor) {
  descriptors[name] = descriptor;
  kernels[name].body = [this, name](std::span<const uint64_t> words) {
    size_t bytes = descriptors[name].argumentBytes;
    wrongWords += bytes != words.size_bytes() &&
                  bytes != words.size_bytes() + hiddenBytes;
    ran.push_back({name, {words.begin(), words.end()}});
  };
}

inline void FakeHip::addCopies() {
  add(
      "hipMemcpy2DAsync",
      +[](Address to, size_t toPitch, Address from, size_t fromPitch,
          size_t bytes, size_t rows, CopyKind kind, Stream stream) {
        return self().perform("copyRows", [&]() -> Status {
          if (kind != CopyKind::DeviceToDevice)
            return invalidValue;
          Status status = FakeGpu::copyRows({to, toPitch}, {from, fromPitch},
                                            bytes, rows, stream);
          return status ? invalidPitch : success;
        });
      });
}

} // namespace costate::runtime::hip
