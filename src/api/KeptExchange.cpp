/// Sums and exchanges in graphs.

#include "api/Checked.h"
#include "api/Distributed.h"
#include "api/GraphImpl.h"
#include "runtime/Graph.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;

namespace {
/// With the arrays that it writes, which it keeps alive.
class KeptExchange final : public AccessSet {
public:
  KeptExchange(std::string what, std::vector<AnyArray> written)
      : what(std::move(what)), written(std::move(written)) {
    for (const AnyArray &array : this->written) {
      add({array.storage().get(), false, true});
      boxes.push_back(runtime::Box::whole(array.storage()->extents));
    }
  }

private:
  std::string useText(size_t use) const override {
    return "an array of " + runtime::contentsText(*uses[use].array);
  }
  std::string readerText() const override { return what; }
  std::string writerText() const override { return what; }
  runtime::Box writtenElements(size_t use) const override { return boxes[use]; }

  const std::string what;
  const std::vector<AnyArray> written;
  std::vector<runtime::Box> boxes;
};
} // namespace

static Result<> resultOf(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return Failure{error.code(), error.what()};
  }
  return {};
}

bool distributed::Communicator::fits_graphs(const Device &device) const {
  return device.shared()->info().target == "cpu";
}

void detail::captureExchange(const Group &group, const Device &device,
                             const std::string &what,
                             std::vector<AnyArray> written,
                             std::function<void()> body) {
  if (!group->fits_graphs(device))
    raise(ErrorCode::CannotCapture,
          "a graph of `" + device.name() + "` cannot repeat " + what +
              ", whose messages the host sends; call it between replays, or "
              "have ranks of NCCL");
  auto kept = std::make_shared<KeptExchange>(what, std::move(written));
  runtime::KeptCall call{[body = std::move(body)] { return resultOf(body); }};
  Capture *capture = Capture::current();
  capture->append(*device.shared(), {call, {kept, kept.get()}});
  capture->callAfterReplay(group.get(), [group] { group->replayed(); });
}
