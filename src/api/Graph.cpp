#include "costate/graph.h"

#include "api/Checked.h"
#include "api/GraphImpl.h"
#include "api/PastLaunch.h"
#include "api/Recording.h"
#include "costate/device.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;

void detail::requireNoCapture(const std::string &what) {
  if (Capture::current())
    raise(ErrorCode::CannotCapture,
          "a graph cannot " + what + "; do it outside of `capture`");
}

static void requireNoRecording(const std::string &what) {
  if (recordingTape())
    raise(ErrorCode::CannotCapture,
          "a `Tape` cannot record " + what +
              "; launch the kernels themselves while it records");
}

Capture::Capture(std::shared_ptr<runtime::Device> device)
    : graph(std::make_shared<GraphImpl>()) {
  requireNoCapture("capture another one");
  requireNoRecording("how a graph is captured");
  graph->device = std::move(device);
  thisThread().capture = this;
}

Capture::~Capture() { thisThread().capture = nullptr; }

void Capture::append(const runtime::Device &device, GraphEntry entry) {
  if (&device != graph->device.get())
    raise(ErrorCode::BadArgument,
          "a graph of `" + graph->device->info().name +
              "` cannot hold what another device does (`" + device.info().name +
              "`); capture one graph for each device");
  for (const ArrayUse &use : entry.accesses->all())
    if (use.written)
      ++writes[use.array];
  graph->entries.push_back(std::move(entry));
}

namespace {
/// A launch with all that it refers to.
struct CapturedLaunch {
  explicit CapturedLaunch(const BoundLaunch &launched)
      : call(launched.call), launch(call, launched.chain, launched.compiled),
        workspace(launch.makeWorkspace()) {}

  const Call call;
  const BoundLaunch launch;
  const BoundLaunch::Workspace workspace;
};
} // namespace

void Capture::append(const BoundLaunch &launched) {
  launched.requireApart();
  auto kept = std::make_shared<CapturedLaunch>(launched);
  const BoundLaunch &launch = kept->launch;
  const BoundLaunch *toRemember = launch.isGradient() ? nullptr : &launch;
  append(*launch.call.device,
         {launch.request({}, kept->workspace), {kept, &launch}, toRemember});
  if (toRemember)
    rememberLaunch(*toRemember);
}

std::shared_ptr<GraphImpl> Capture::end() {
  if (!unfinished.empty())
    raise(ErrorCode::CannotCapture,
          unfinished.begin()->second +
              " is started in a graph, and not finished there; finish it in "
              "the same graph");
  ending = true;
  std::vector<runtime::Step> steps;
  for (const GraphEntry &entry : graph->entries)
    steps.push_back(entry.step);
  graph->graph = checked(graph->device->capture(std::move(steps)));
  return graph;
}

void GraphImpl::replay() {
  requireNoCapture("replay another one");
  requireNoRecording("the replay of a graph");
  for (const GraphEntry &entry : entries) {
    entry.accesses->tellCustomLaunches();
    entry.accesses->tellWatchers();
  }
  Result<> done = [&] {
    profile::Timed timed([&] {
      return profile::Span{profile::Kind::Launch,
                           "graph of " + std::to_string(entries.size())};
    });
    return graph->replay();
  }();
  for (const GraphEntry &entry : entries) {
    entry.accesses->countWrites();
    if (entry.toRemember)
      rememberLaunch(*entry.toRemember);
  }
  for (const auto &[who, call] : afterReplay)
    call();
  checked(done);
}

Graph::Graph() : impl(std::make_shared<GraphImpl>()) {}

void Graph::replay() const {
  if (impl->graph)
    impl->replay();
}

size_t Graph::size() const { return impl->entries.size(); }

Graph Device::capture(const std::function<void()> &body) const {
  Capture capture(handle.get());
  body();
  return Graph(capture.end());
}
