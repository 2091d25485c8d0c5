#include "api/ArrayKernels.h"
#include "api/Checked.h"
#include "api/Distributed.h"
#include "api/GraphImpl.h"
#include "api/KernelImpl.h"
#include "api/Recording.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using distributed::Exchange;

/// Where the components of elements stand in front, axes count from behind
/// them.
static int dimensionOf(const AnyArray &array, int axis) {
  return axis + (array.form().count > 0 && array.component_dim() <= axis);
}

static ArrayOptions optionsOf(const AnyArray &array) {
  ArrayOptions options;
  if (array.has_dual() && array.dual().rank() > array.rank())
    options.directions = static_cast<int>(array.dual().size(0));
  return options;
}

AnyArray Transfer::bufferFor(const Slices &slices, int64_t extent) const {
  std::vector<int64_t> shape = slices.array.shape();
  shape[static_cast<size_t>(dimensionOf(slices.array, slices.axis))] = extent;
  auto flags =
      static_cast<Flags>((slices.array.has_grad() ? costate::grad : 0) |
                         (slices.array.has_dual() ? costate::dual : 0));
  return slices.array.device().array(slices.array.dtype(), shape, flags,
                                     optionsOf(slices.array));
}

void Transfer::send(const Slices &slices, int64_t extent) {
  sends.push_back(slices);
  sends.back().buffer = bufferFor(slices, extent);
}

void Transfer::receive(const Slices &slices, int64_t extent) {
  receives.push_back(slices);
  if (slices.peer != own) {
    receives.back().buffer = bufferFor(slices, extent);
    return;
  }
  auto isOwn = [&](const Slices &one) { return one.peer == slices.peer; };
  auto nth = std::count_if(receives.begin(), receives.end(), isOwn);
  auto place = sends.begin();
  while (!isOwn(*place) || --nth > 0)
    ++place;
  receives.back().buffer = place->buffer;
}

static void launchCopy(const Kernel &kernel, Mode mode,
                       const std::vector<ArgumentValue> &values,
                       const AnyArray &array) {
  bool derives = mode == Mode::Gradient ? array.has_grad() : array.has_dual();
  if (mode != Mode::Gradient || derives)
    kernel.launch_with(derives ? mode : Mode::Primal, values);
}

/// By one launch.
static void copyTogether(std::span<const Slices> all, Way way, Mode mode) {
  const AnyArray &array = all[0].array;
  std::vector<ArgumentValue> values{array};
  for (const Slices &one : all)
    values.push_back(one.buffer);
  for (const Slices &one : all)
    values.push_back(one.start);
  launchCopy(slicesKernel(array.dtype(), array.rank(),
                          dimensionOf(array, all[0].axis), way, all.size()),
             mode, values, array);
}

/// Both sides of a halo at once.
void Transfer::pack(Mode mode) const {
  auto isPair = [](const Slices &one, const Slices &next) {
    return one.array.storage() == next.array.storage() &&
           one.axis == next.axis && one.buffer.shape() == next.buffer.shape();
  };
  std::span<const Slices> left = sends;
  while (!left.empty()) {
    size_t count = left.size() > 1 && isPair(left[0], left[1]) ? 2 : 1;
    copyTogether(left.first(count), Way::IntoBuffer, mode);
    left = left.subspan(count);
  }
}

/// What gets parts of many ranks has no kernel for each of them.
void Transfer::unpack(Mode mode) const {
  constexpr size_t few = 8;
  for (const Slices &one : receives) {
    const AnyArray &array = one.array;
    if (receives.size() > few)
      copyTogether({&one, 1}, Way::OutOfBuffer, mode);
    else
      launchCopy(unpackKernel(array.dtype(), array.rank(),
                              dimensionOf(array, one.axis), one.start),
                 mode, {array, one.buffer}, array);
  }
}

static AnyArray itself(const AnyArray &array) { return array; }
static AnyArray gradOf(const AnyArray &array) {
  return array.has_grad() ? array.grad() : AnyArray();
}
static AnyArray dualOf(const AnyArray &array) {
  return array.has_dual() ? array.dual() : AnyArray();
}

std::vector<Message> Transfer::messages(const std::vector<Slices> &all,
                                        Which which) const {
  std::vector<Message> result;
  for (const Slices &slices : all)
    if (AnyArray array = which(slices.buffer); array && slices.peer != own)
      result.push_back({slices.peer, array});
  return result;
}

bool Transfer::isAlone() const {
  auto isOwn = [this](const Slices &one) { return one.peer == own; };
  return std::ranges::all_of(sends, isOwn) &&
         std::ranges::all_of(receives, isOwn);
}

const AnyArray &Transfer::first() const {
  return (sends.empty() ? receives : sends).front().array;
}

bool Transfer::hasGrad() const {
  auto has = [](const Slices &one) { return one.array.has_grad(); };
  return std::ranges::any_of(sends, has) || std::ranges::any_of(receives, has);
}

bool Transfer::hasDual() const {
  auto has = [](const Slices &one) { return one.array.has_dual(); };
  return std::ranges::any_of(sends, has) || std::ranges::any_of(receives, has);
}

Transfer::Wait Transfer::begin(Mode mode) const {
  Wait values =
      group->exchange(messages(sends, itself), messages(receives, itself));
  if (mode != Mode::Tangent || !hasDual())
    return values;
  Wait tangents =
      group->exchange(messages(sends, dualOf), messages(receives, dualOf));
  return [=] {
    values();
    tangents();
  };
}

static void clear(const AnyArray &adjoint) {
  if (adjoint.dtype() == DType::F64)
    Array<double>(adjoint).fill(0);
  else
    Array<float>(adjoint).fill(0);
}

/// Buffers are ours alone, so the adjoints of those that were sent are 0 before
/// this.
Transfer::Wait Transfer::beginBack() const {
  if (!hasGrad())
    return [] {};
  return group->exchange(messages(receives, gradOf), messages(sends, gradOf));
}

/// Adjoints that have been sent.
void Transfer::clearReceived() const {
  if (!isAlone() && hasGrad())
    for (const Message &one : messages(receives, gradOf))
      clear(one.array);
}

static std::vector<AnyArray> arraysOf(const std::vector<Message> &messages) {
  std::vector<AnyArray> arrays;
  for (const Message &message : messages)
    arrays.push_back(message.array);
  return arrays;
}

/// What an exchange writes.
std::vector<AnyArray> Transfer::received(Mode mode) const {
  if (mode == Mode::Gradient)
    return hasGrad() ? arraysOf(messages(sends, gradOf))
                     : std::vector<AnyArray>();
  std::vector<AnyArray> arrays = arraysOf(messages(receives, itself));
  for (size_t k = arrays.size(); mode == Mode::Tangent && k-- > 0;)
    if (arrays[k].has_dual())
      arrays.push_back(arrays[k].dual());
  return arrays;
}

/// Nobody looks at values: it is linear. Engines may use the memory of arrays,
/// which reads and writes them.
CustomLaunch Transfer::launch(const char *part) const {
  CustomLaunch result{.name = part + name, .loc = loc};
  result.writes = arraysOf(messages(receives, itself));
  result.reads = arraysOf(messages(sends, itself));
  result.reads.insert(result.reads.end(), result.writes.begin(),
                      result.writes.end());
  result.unneeded = result.reads;
  return result;
}

/// Between other ranks: `part` of an exchange, with its gradient.
void Transfer::launchIn(Mode mode, const char *part, const Body &gradient,
                        const std::function<void(Mode)> &body) {
  if (isAlone())
    return;
  if (Capture::current())
    return captureExchange(group, first().device(), part + name, received(mode),
                           [=] { body(mode); });
  if (!recordingTape())
    return body(mode);
  CustomLaunch all = launch(part);
  all.gradient = gradient;
  all.primal = [=] { body(Mode::Primal); };
  all.tangent = [=] { body(Mode::Tangent); };
  if (mode == Mode::Tangent)
    all.jvp();
  else
    all();
}

/// The same of a gradient by hand.
void Transfer::gradient(const Body &body) {
  if (isAlone())
    return;
  if (Capture::current())
    captureExchange(group, first().device(), "the gradient of " + name,
                    received(Mode::Gradient), body);
  else
    body();
}

void Transfer::run(Mode mode) {
  pack(mode);
  auto self = shared_from_this();
  auto back = [self] {
    self->beginBack()();
    self->clearReceived();
  };
  launchIn(mode, "the exchange of ", back,
           [self](Mode mode) { self->begin(mode)(); });
  unpack(mode);
}

void Transfer::grad() {
  unpack(Mode::Gradient);
  gradient([self = shared_from_this()] { self->beginBack()(); });
  clearReceived();
  pack(Mode::Gradient);
}

//===-- In two parts ------------------------------------------------------===//

Transfer::Begun::Begun() : inGraph(Capture::current()) {
  if (inGraph)
    graph = Capture::current()->token();
}

bool Transfer::Begun::isHere() const {
  Capture *capture = Capture::current();
  return capture ? inGraph && graph.lock() == capture->token() : !inGraph;
}

void Transfer::open(std::optional<Begun> &begun) {
  if (begun && !begun->isForgotten())
    raise(ErrorCode::BadArgument,
          name + sourceText(loc) + " is started twice; finish it first");
  begun.emplace();
  if (Capture *capture = Capture::current())
    capture->open(this, name + sourceText(loc));
}

std::shared_ptr<Transfer::Wait> Transfer::close(std::optional<Begun> &begun,
                                                const char *missing) {
  if (!begun || begun->isForgotten())
    raise(ErrorCode::BadArgument, name + sourceText(loc) + missing);
  if (!begun->isHere())
    raise(ErrorCode::CannotCapture,
          name + sourceText(loc) +
              " is started and finished in different places; do both in one "
              "graph, or both outside of graphs");
  if (Capture *capture = Capture::current())
    capture->close(this);
  auto wait = begun->wait;
  begun.reset();
  return wait;
}

static void waitOnce(std::function<void()> &wait) {
  if (auto once = std::exchange(wait, nullptr))
    once();
}

void Transfer::start(Mode mode) {
  open(pending);
  pack(mode);
  auto self = shared_from_this();
  auto back = [self] {
    if (!self->pendingBack)
      return;
    waitOnce(*self->close(self->pendingBack, ""));
    self->clearReceived();
  };
  launchIn(
      mode, "the start of ", back,
      [self, wait = pending->wait](Mode mode) { *wait = self->begin(mode); });
}

void Transfer::finish(Mode mode) {
  auto wait = close(pending, " is finished without a start");
  auto back = [self = shared_from_this()] {
    self->pendingBack.reset(); // of a backward that has failed
    self->open(self->pendingBack);
    *self->pendingBack->wait = self->beginBack();
  };
  launchIn(mode, "the end of ", back, [wait](Mode) { waitOnce(*wait); });
  unpack(mode);
}

void Transfer::finishGrad() {
  open(pendingBack);
  unpack(Mode::Gradient);
  gradient([self = shared_from_this(), wait = pendingBack->wait] {
    *wait = self->beginBack();
  });
}

void Transfer::startGrad() {
  auto wait =
      close(pendingBack,
            ": the gradient of its start comes after that of its finish");
  gradient([wait] { waitOnce(*wait); });
  clearReceived();
  pack(Mode::Gradient);
}

void Exchange::operator()() const { impl->run(Mode::Primal); }
void Exchange::grad() const { impl->grad(); }
void Exchange::jvp() const { impl->run(Mode::Tangent); }
void Exchange::start() const { impl->start(Mode::Primal); }
void Exchange::finish() const { impl->finish(Mode::Primal); }
void Exchange::start_jvp() const { impl->start(Mode::Tangent); }
void Exchange::finish_jvp() const { impl->finish(Mode::Tangent); }
void Exchange::finish_grad() const { impl->finishGrad(); }
void Exchange::start_grad() const { impl->startGrad(); }
