#include "api/ArrayKernels.h"
#include "api/Checked.h"
#include "api/Distributed.h"
#include "api/GraphImpl.h"
#include "api/Recording.h"
#include "costate/device.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using namespace costate::distributed;

static void combine(const AnyArray &target, const AnyArray &source, Store how) {
  const std::array<ArgumentValue, 2> values = {target, source};
  wholeKernel(target.dtype(), target.rank(), how)
      .launch_with(Mode::Primal, values);
}

void detail::sumInOrder(Communicator &group, AnyArray array) {
  size_t own = static_cast<size_t>(group.rank());
  std::vector<AnyArray> parts;
  std::vector<Message> sends, receives;
  for (int peer = 0; peer < group.size(); ++peer) {
    parts.push_back(array.device().array(array.dtype(), array.shape()));
    if (peer != group.rank()) {
      sends.push_back({peer, array});
      receives.push_back({peer, parts.back()});
    }
  }
  combine(parts[own], array, Store::Assign);
  group.exchange(sends, receives)();
  combine(array, parts[0], Store::Assign);
  for (size_t k = 1; k < parts.size(); ++k)
    combine(array, parts[k], Store::Add);
}

void RankSum::sum(const AnyArray &one) const {
  if (group->size() == 1)
    return;
  if (options.ordered)
    sumInOrder(*group, one);
  else
    group->sum(one);
}

/// Sums in the order of ranks make arrays, which a graph of a GPU cannot.
static void requireInGraph(const RankSum &one) {
  bool isOnHost = one.array.device().shared()->info().target == "cpu";
  if (Capture::current() && one.options.ordered && !isOnHost)
    raise(ErrorCode::CannotCapture,
          "a graph of `" + one.array.device().name() +
              "` cannot repeat a sum in the order of ranks" +
              sourceText(one.loc) + "; leave out `ordered`");
}

void RankSum::call(const std::vector<AnyArray> &all) const {
  if (group->size() == 1)
    return;
  requireInGraph(*this);
  RankSum own = *this;
  auto body = [own, all] {
    for (const AnyArray &one : all)
      own.sum(one);
  };
  if (Capture::current())
    captureExchange(group, array.device(), "a sum over ranks", all, body);
  else
    body();
}

CustomLaunch RankSum::launch(const std::shared_ptr<RankSum> &self) const {
  return {.name = "a sum over ranks",
          .reads = {array},
          .writes = {array},
          .unneeded = {array},
          .primal = [self] { self->call({self->array}); },
          .gradient =
              [self] {
                if (!self->options.replicated && self->array.has_grad())
                  self->call({self->array.grad()});
              },
          .tangent =
              [self] {
                std::vector<AnyArray> all{self->array};
                if (self->array.has_dual())
                  all.push_back(self->array.dual());
                self->call(all);
              },
          .loc = loc};
}

static void agreeOnSum(const AnyArray &array, const Group &group,
                       SumOptions options, Loc loc) {
  Request request{.kind = Request::Sum, .array = array};
  request.ordered = options.ordered, request.replicated = options.replicated;
  agree(*group, array.device(), request, loc);
}

AllReduce::AllReduce(const AnyArray &array, const Group &group,
                     SumOptions options, Loc loc)
    : impl(std::make_shared<RankSum>(array, group, options, loc)) {
  agreeOnSum(array, group, options, loc);
}

void AllReduce::operator()() const { impl->launch(impl)(); }
void AllReduce::grad() const { impl->launch(impl).grad(); }
void AllReduce::jvp() const { impl->launch(impl).jvp(); }

void distributed::sum_over_ranks(const AnyArray &array, const Group &group,
                                 SumOptions options, Loc loc) {
  RecordingPause pause;
  agreeOnSum(array, group, options, loc);
  RankSum{array, group, options, loc}.sum(array);
}

void distributed::sum_gradients(const std::vector<AnyArray> &arrays,
                                const Group &group, SumOptions options,
                                Loc loc) {
  for (const AnyArray &array : arrays)
    sum_over_ranks(array.grad(), group, options, loc);
}
