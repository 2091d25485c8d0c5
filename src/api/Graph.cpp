#include "costate/graph.h"

#include "api/Checked.h"
#include "api/GraphImpl.h"
#include "api/Recording.h"
#include "costate/device.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;

static thread_local Capture *currentCapture = nullptr;

Capture *Capture::current() { return currentCapture; }

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
  currentCapture = this;
}

Capture::~Capture() { currentCapture = nullptr; }

void Capture::append(const runtime::Device &device, GraphEntry entry) {
  if (&device != graph->device.get())
    raise(ErrorCode::BadArgument,
          "a graph of `" + graph->device->info().name +
              "` cannot hold what another device does (`" + device.info().name +
              "`); capture one graph for each device");
  graph->entries.push_back(std::move(entry));
}

std::shared_ptr<GraphImpl> Capture::end() {
  std::vector<runtime::Step> steps;
  for (const GraphEntry &entry : graph->entries)
    steps.push_back(entry.step);
  graph->graph = checked(graph->device->capture(std::move(steps)));
  return graph;
}

void GraphImpl::replay() {
  requireNoCapture("replay another one");
  requireNoRecording("the replay of a graph");
  for (const GraphEntry &entry : entries)
    entry.before();
  Result<> done = graph->replay();
  for (const GraphEntry &entry : entries)
    entry.after();
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
