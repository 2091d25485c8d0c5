#pragma once
/// A CUDA driver without a GPU, for tests.

#include "base/DeviceSymbol.h"
#include "runtime/cuda/CudaApi.h"
#include "runtime/cuda/OwnKernels.h"
#include "runtime/streams/FakeGpu.h"

namespace costate::runtime::cuda {

/// One at a time: the newest. Safe to use from several threads.
class FakeCuda final : public FakeGpu {
public:
  FakeCuda() {
    static_cast<Functions &>(cuda) = makeLocking();
    makeOwn(cuda);
    for (const OwnKernel *kernel : {&tellBytesKernel, &tellWordsKernel})
      kernels[deviceSymbol(kernel->symbol)].body = tell;
  }

  const CudaApi &api() const override { return cuda; }

private:
  static void tell(std::span<const uint64_t> words) {
    std::memcpy(reinterpret_cast<void *>(words[0]),
                reinterpret_cast<const void *>(words[1]), words[2]);
    *reinterpret_cast<uint64_t *>(words[3]) = 1;
  }
  static FakeCuda &self() { return static_cast<FakeCuda &>(*fake); }
  static void makeOwn(CudaApi &api);
  static void makeCode(OwnFunctions &own);

  CudaApi cuda;
};

inline void FakeCuda::makeOwn(CudaApi &api) {
  OwnFunctions &own = api.own;
  api.attribute = [](int *value, int which, DeviceNumber) {
    auto attribute = static_cast<DeviceAttribute>(which);
    *value = attribute == DeviceAttribute::HasPools          ? fake->hasPools
             : attribute == DeviceAttribute::CapabilityMajor ? 9
                                                             : 64;
    return success;
  };
  own.errorName = [](Status, const char **text) {
    *text = "FAKE_ERROR";
    return success;
  };
  own.errorString = own.errorName;
  own.retainContext = [](ContextHandle *, DeviceNumber) { return success; };
  own.releaseContext = [](DeviceNumber) { return success; };
  own.pushContext = [](ContextHandle) {
    return self().perform("pushContext", [] { return success; });
  };
  own.popContext = [](ContextHandle *) { return success; };
  own.copyRows = [](const RowCopy *rows, Stream stream) {
    for (const PitchedMemory &side : {rows->from, rows->to})
      if (side.kind != MemoryKind::Device || side.xInBytes || side.y)
        return invalidValue;
    return self().perform("copyRows", [&] {
      return FakeGpu::copyRows({rows->to.device, rows->to.pitch},
                               {rows->from.device, rows->from.pitch},
                               rows->bytes, rows->rows, stream);
    });
  };
  makeCode(own);
}

inline void FakeCuda::makeCode(OwnFunctions &own) {
  own.loadCode = [](Code *code, const void *image, unsigned, JitOption *,
                    void **) {
    return self().perform("loadCode", [&] {
      return self().load(code, image,
                         std::strlen(static_cast<const char *>(image)));
    });
  };
  own.getFunction = [](int *value, FunctionAttribute, Function function) {
    *value = function->localBytes ? function->localBytes(function->text) : 0;
    return success;
  };
  own.setFunction = [](Function function, FunctionAttribute, int value) {
    ++function->limitChanges;
    function->sharedLimit = static_cast<size_t>(value);
    return success;
  };
}

} // namespace costate::runtime::cuda
