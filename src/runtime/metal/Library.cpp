#include "runtime/metal/Library.h"

#include "base/DeviceSymbol.h"
#include "base/MetalChip.h"
#include "runtime/metal/Commands.h"

namespace costate::runtime::metal {
namespace {

constexpr long safe = 0;                          // MTLMathModeSafe
constexpr unsigned long language = (3 << 16) + 2; // MTLLanguageVersion3_2
constexpr unsigned long noOptions = 0;            // MTLPipelineOptionNone

/// An NSString that the pool keeps.
Object textOf(const Api &api, const std::string &text) {
  return send(api, api.findClass("NSString"),
              "stringWithUTF8String:", text.c_str());
}

Owned made(const Api &api, const char *name) {
  return Owned(api, send(api, api.findClass(name), "new"));
}

} // namespace

Result<std::shared_ptr<Library>> Library::load(const Api &api, Object device,
                                               const gpu::DeviceCode &code) {
  Pool pool(api);
  Owned options = made(api, "MTLCompileOptions");
  send<void>(api, options.get(), "setMathMode:", safe);
  send<void>(api, options.get(), "setLanguageVersion:", language);
  std::shared_ptr<Library> library(new Library(api, device));
  Object error = nullptr;
  library->library =
      Owned(api, send(api, device, "newLibraryWithSource:options:error:",
                      textOf(api, code.image), options.get(), &error));
  if (!library->library)
    return Failure{ErrorCode::Internal,
                   "the GPU fails to load code: " + errorText(api, error)};
  library->ownBytes = metalBlockBytes(code.image);
  return library;
}

Result<Owned> Library::make(const std::string &symbol, int blockThreads) {
  Pool pool(api);
  auto fails = [&](const std::string &why) {
    return Failure{ErrorCode::Internal,
                   "the GPU fails to assemble the kernel `" + symbol +
                       "`: " + why};
  };
  std::string name = metalName(deviceSymbol(symbol));
  Owned function(
      api, send(api, library.get(), "newFunctionWithName:", textOf(api, name)));
  if (!function)
    return fails("there is none of that name");
  Owned form = made(api, "MTLComputePipelineDescriptor");
  send<void>(api, form.get(), "setComputeFunction:", function.get());
  send<void>(api, form.get(), "setMaxTotalThreadsPerThreadgroup:",
             static_cast<unsigned long>(blockThreads));
  Object error = nullptr;
  Owned pipeline(
      api, send(api, device,
                "newComputePipelineStateWithDescriptor:options:reflection:"
                "error:",
                form.get(), noOptions, static_cast<Object *>(nullptr), &error));
  if (!pipeline)
    return fails(errorText(api, error));
  return pipeline;
}

Result<Object> Library::pipeline(const std::string &symbol, int blockThreads) {
  std::lock_guard lock(mutex);
  Owned &known = pipelines[{symbol, blockThreads}];
  if (known)
    return known.get();
  Result<Owned> fresh = make(symbol, blockThreads);
  if (!fresh)
    return fresh.error();
  known = std::move(*fresh);
  return known.get();
}

} // namespace costate::runtime::metal
