#include "runtime/streams/StreamModule.h"

#include "base/DeviceSymbol.h"

namespace costate::runtime::streams {

StreamModule::~StreamModule() {
  if (isUsed)
    (void)session->wait();
  session->forgetSeries();
  (void)session->call(session->api().unloadCode, code);
}

Result<Function> StreamModule::find(const std::string &symbol,
                                    size_t sharedBytes) {
  std::lock_guard lock(mutex);
  isUsed = true;
  Found &kernel = found[symbol];
  if (!kernel.function) {
    Status status = session->call(session->api().function, &kernel.function,
                                  code, deviceSymbol(symbol).c_str());
    if (status != success)
      return session->failure(status, "find the kernel `" + symbol + "`");
  }
  if (auto done = allowShared(symbol, kernel, sharedBytes); !done)
    return done.error();
  return kernel.function;
}

Result<> StreamModule::allowShared(const std::string &symbol, Found &kernel,
                                   size_t bytes) {
  if (bytes <= kernel.sharedBytes)
    return {};
  Status status = session->within(
      [&] { return session->api().allowShared(kernel.function, bytes); });
  if (status == success)
    kernel.sharedBytes = bytes;
  return session->result(status, "give `" + symbol + "` " +
                                     std::to_string(bytes) +
                                     " bytes of shared memory");
}

} // namespace costate::runtime::streams
