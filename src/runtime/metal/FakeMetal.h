#pragma once
/// Metal and the Objective-C runtime for tests: objects that know their kind,
/// and a log of what they were told. Messages arrive as on x86-64, where each
/// method is called with the same registers and the same stack.

#include "runtime/metal/Commands.h"

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace costate::runtime::metal::test {

struct FakeObject {
  std::string kind, text = {};
  int references = 1;
  std::vector<std::byte> memory = {};
};

struct FakeDispatch {
  std::string kernel;
  uint64_t words = 0, locks = 0;
  size_t blockBytes = 0;
  Size blocks, threads;
};

class FakeMetal {
public:
  FakeMetal() { current = this; }
  ~FakeMetal() { current = nullptr; }
  FakeMetal(const FakeMetal &) = delete;

  static const Api &api() {
    static const Api all = {
        [](const char *name) { return current->findClass(name); },
        [](const char *name) {
          return reinterpret_cast<Selector>(const_cast<char *>(
              current->selectors.emplace(name).first->c_str()));
        },
        reinterpret_cast<void (*)()>(receive),
        []() -> void * { return nullptr; },
        [](void *) {},
        [] { return current->createDevice(); }};
    return all;
  }

  /// What the GPU has at an address; the host has it elsewhere.
  static constexpr uint64_t distance = uint64_t(1) << 40;
  template <class T> static T *onHost(uint64_t address) {
    return reinterpret_cast<T *>(address - distance);
  }

  bool hasDevice = true, hasResidency = true;
  size_t largestBuffer = SIZE_MAX;
  std::string compileError, runError;
  /// What a dispatch does, once it is waited for.
  std::function<void(const FakeDispatch &)> run;

  std::vector<std::string> log;
  std::vector<FakeDispatch> dispatches;
  int live = 0;     ///< objects
  int resident = 0; ///< buffers

private:
  static inline FakeMetal *current = nullptr;

  struct Arguments {
    uintptr_t a, b, c, d;
  };

  static uintptr_t receive(FakeObject *self, const char *message, uintptr_t a,
                           uintptr_t b, uintptr_t c, uintptr_t d, Size first,
                           Size second) {
    if (!self)
      return 0;
    return current->answer(*self, message, {a, b, c, d}, first, second);
  }

  Object create(std::string kind, std::string text = "") {
    ++live;
    return reinterpret_cast<Object>(
        new FakeObject{std::move(kind), std::move(text)});
  }
  Object createDevice() { return hasDevice ? create("device") : nullptr; }
  Object findClass(const std::string &name) {
    if (name == "MTLResidencySetDescriptor" && !hasResidency)
      return nullptr;
    auto &known = classes[name];
    if (!known)
      known = std::make_unique<FakeObject>(FakeObject{"class " + name});
    return reinterpret_cast<Object>(known.get());
  }
  /// A text that is there for as long as the fake.
  Object constant(const std::string &text) {
    constants.push_back(std::make_unique<FakeObject>(FakeObject{"text", text}));
    return reinterpret_cast<Object>(constants.back().get());
  }
  Object fails(uintptr_t error, const std::string &text) {
    *reinterpret_cast<Object *>(error) = constant(text);
    return nullptr;
  }

  uintptr_t answer(FakeObject &self, const std::string &message,
                   const Arguments &with, Size first, Size second);
  uintptr_t answerOfDevice(const std::string &message, const Arguments &with);
  void tell(FakeObject &self, const std::string &message, const Arguments &with,
            Size first, Size second);
  void release(FakeObject &self) {
    if (--self.references)
      return;
    --live;
    delete &self;
  }

  std::set<std::string> selectors;
  std::map<std::string, std::unique_ptr<FakeObject>> classes;
  std::vector<std::unique_ptr<FakeObject>> constants;
  FakeDispatch next;
  std::vector<FakeDispatch> encoded;
};

inline uintptr_t FakeMetal::answer(FakeObject &self, const std::string &message,
                                   const Arguments &with, Size first,
                                   Size second) {
  uintptr_t a = with.a;
  auto number = [](Object object) {
    return reinterpret_cast<uintptr_t>(object);
  };
  if (message == "release") {
    release(self);
    return 0;
  }
  if (message == "retain") {
    ++self.references;
    return reinterpret_cast<uintptr_t>(&self);
  }
  if (message == "new")
    return number(create(self.kind.substr(6)));
  if (message == "stringWithUTF8String:")
    return number(constant(reinterpret_cast<const char *>(a)));
  if (message == "UTF8String")
    return reinterpret_cast<uintptr_t>(self.text.c_str());
  if (message == "localizedDescription")
    return reinterpret_cast<uintptr_t>(&self);
  if (message == "contents")
    return reinterpret_cast<uintptr_t>(self.memory.data());
  if (message == "gpuAddress")
    return reinterpret_cast<uintptr_t>(self.memory.data()) + distance;
  if (message == "newFunctionWithName:")
    return number(create("function", reinterpret_cast<FakeObject *>(a)->text));
  if (message == "commandBuffer" || message == "computeCommandEncoder") {
    Object made = create(message);
    reinterpret_cast<FakeObject *>(made)->references = 0; // but for the pool's
    return number(made);
  }
  if (message == "status")
    return runError.empty() ? 4 : 5;
  if (message == "error")
    return runError.empty() ? 0 : number(constant(runError));
  if (self.kind == "device")
    return answerOfDevice(message, with);
  tell(self, message, with, first, second);
  return 0;
}

inline uintptr_t FakeMetal::answerOfDevice(const std::string &message,
                                           const Arguments &with) {
  uintptr_t a = with.a;
  Object made = nullptr;
  if (message == "name")
    made = constant("a fake");
  else if (message == "recommendedMaxWorkingSetSize")
    return size_t(1) << 30;
  else if (message == "maxThreadgroupMemoryLength")
    return 32 << 10;
  else if (message == "newCommandQueue")
    made = create("queue");
  else if (message == "newResidencySetWithDescriptor:error:")
    made = create("residency");
  else if (message == "newBufferWithLength:options:") {
    if (a > largestBuffer)
      return 0;
    made = create("buffer");
    reinterpret_cast<FakeObject *>(made)->memory.resize(a, std::byte(0x5a));
  } else if (message == "newLibraryWithSource:options:error:") {
    made = compileError.empty()
               ? create("library", reinterpret_cast<FakeObject *>(a)->text)
               : fails(with.c, compileError);
  } else if (message.starts_with("newComputePipelineStateWithDescriptor")) {
    made = create("pipeline", reinterpret_cast<FakeObject *>(a)->text);
  }
  return reinterpret_cast<uintptr_t>(made);
}

inline void FakeMetal::tell(FakeObject &self, const std::string &message,
                            const Arguments &with, Size first, Size second) {
  uintptr_t a = with.a;
  log.push_back(message);
  if (message == "setMathMode:" || message == "setLanguageVersion:" ||
      message == "setMaxTotalThreadsPerThreadgroup:")
    log.back() += " " + std::to_string(a);
  if (message == "setComputeFunction:")
    self.text = reinterpret_cast<FakeObject *>(a)->text;
  if (message == "addAllocation:")
    ++resident;
  if (message == "removeAllocation:")
    --resident;
  if (message == "setComputePipelineState:")
    next.kernel = reinterpret_cast<FakeObject *>(a)->text;
  if (message == "setBytes:length:atIndex:" && with.b == 16)
    std::memcpy(&next.words, reinterpret_cast<void *>(a), 16);
  if (message == "setThreadgroupMemoryLength:atIndex:")
    next.blockBytes = a;
  if (message == "dispatchThreadgroups:threadsPerThreadgroup:") {
    next.blocks = first;
    next.threads = second;
    encoded.push_back(next);
  }
  if (message != "waitUntilCompleted")
    return;
  for (const FakeDispatch &dispatch : encoded) {
    dispatches.push_back(dispatch);
    if (run)
      run(dispatch);
  }
  encoded.clear();
}

} // namespace costate::runtime::metal::test
