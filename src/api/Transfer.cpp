#include "api/ArrayKernels.h"
#include "api/Checked.h"
#include "api/Distributed.h"
#include "api/KernelImpl.h"

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
  if (slices.peer != group->rank()) {
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

static void copySlices(const Slices &slices, Way way, Mode mode) {
  const AnyArray &array = slices.array;
  int dim = dimensionOf(array, slices.axis);
  const Kernel &kernel = slicesKernel(array.dtype(), array.rank(), dim, way);
  bool derives = mode == Mode::Gradient ? array.has_grad() : array.has_dual();
  if (mode == Mode::Gradient && !derives)
    return;
  const std::array<ArgumentValue, 3> values = {array, slices.buffer,
                                               slices.start};
  kernel.launch_with(derives ? mode : Mode::Primal, values);
}

void Transfer::pack(Mode mode) const {
  for (const Slices &slices : sends)
    copySlices(slices, Way::IntoBuffer, mode);
}

void Transfer::unpack(Mode mode) const {
  for (const Slices &slices : receives)
    copySlices(slices, Way::OutOfBuffer, mode);
}

static AnyArray itself(const AnyArray &array) { return array; }
static AnyArray gradOf(const AnyArray &array) { return array.grad(); }
static AnyArray dualOf(const AnyArray &array) { return array.dual(); }

std::vector<Message> Transfer::messages(const std::vector<Slices> &all,
                                        Which which) const {
  std::vector<Message> result;
  for (const Slices &slices : all)
    if (slices.peer != group->rank())
      result.push_back({slices.peer, which(slices.buffer)});
  return result;
}

bool Transfer::isAlone() const {
  return messages(sends, itself).empty() && messages(receives, itself).empty();
}

bool Transfer::hasGrad() const {
  return (sends.empty() ? receives : sends).front().array.has_grad();
}

Transfer::Wait Transfer::begin(Mode mode) const {
  Wait values =
      group->exchange(messages(sends, itself), messages(receives, itself));
  bool hasDual = (sends.empty() ? receives : sends).front().array.has_dual();
  if (mode != Mode::Tangent || !hasDual)
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
  Wait wait =
      group->exchange(messages(receives, gradOf), messages(sends, gradOf));
  return [self = shared_from_this(), wait] {
    wait();
    for (const Message &one : self->messages(self->receives, gradOf))
      clear(one.array);
  };
}

static std::vector<AnyArray> arraysOf(const std::vector<Message> &messages) {
  std::vector<AnyArray> arrays;
  for (const Message &message : messages)
    arrays.push_back(message.array);
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

static void launchIn(Mode mode, CustomLaunch launch,
                     const std::function<void(Mode)> &body) {
  launch.primal = [=] { body(Mode::Primal); };
  launch.tangent = [=] { body(Mode::Tangent); };
  if (mode == Mode::Tangent)
    launch.jvp();
  else
    launch();
}

void Transfer::exchange(Mode mode) {
  if (isAlone())
    return;
  CustomLaunch both = launch("the exchange of ");
  auto self = shared_from_this();
  both.gradient = [self] { self->beginBack()(); };
  launchIn(mode, both, [self](Mode mode) { self->begin(mode)(); });
}

void Transfer::run(Mode mode) {
  pack(mode);
  exchange(mode);
  unpack(mode);
}

void Transfer::grad() {
  unpack(Mode::Gradient);
  if (!isAlone())
    beginBack()();
  pack(Mode::Gradient);
}

void Transfer::start(Mode mode) {
  if (pending)
    raise(ErrorCode::BadArgument,
          name + sourceText(loc) + " is started twice; finish it first");
  pack(mode);
  if (isAlone()) {
    pending = [] {};
    return;
  }
  CustomLaunch first = launch("the start of ");
  auto self = shared_from_this();
  first.gradient = [self] {
    if (Wait wait = std::exchange(self->pendingBack, nullptr))
      wait();
  };
  launchIn(mode, first,
           [self](Mode mode) { self->pending = self->begin(mode); });
}

void Transfer::finish(Mode mode) {
  if (!pending)
    raise(ErrorCode::BadArgument,
          name + sourceText(loc) + " is finished without a start");
  Wait wait = std::exchange(pending, nullptr);
  if (!isAlone()) {
    CustomLaunch last = launch("the end of ");
    auto self = shared_from_this();
    last.gradient = [self] { self->pendingBack = self->beginBack(); };
    launchIn(mode, last, [wait](Mode) { wait(); });
  }
  unpack(mode);
}

void Exchange::operator()() const { impl->run(Mode::Primal); }
void Exchange::grad() const { impl->grad(); }
void Exchange::jvp() const { impl->run(Mode::Tangent); }
void Exchange::start() const { impl->start(Mode::Primal); }
void Exchange::finish() const { impl->finish(Mode::Primal); }
void Exchange::start_jvp() const { impl->start(Mode::Tangent); }
void Exchange::finish_jvp() const { impl->finish(Mode::Tangent); }
