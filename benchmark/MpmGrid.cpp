/// The grid operation of a material point method with few cells that have mass:
/// what its gradient saves, and how long it takes.

#include "Bench.h"
#include "MpmScene.h"

namespace costate::bench {
namespace {

std::string nameOf(const MpmOptions &options) {
  char text[48];
  std::snprintf(text, sizeof text, "%d-%g%%%s", options.colliders,
                100 * options.active, options.moving ? "-moving" : "");
  return text;
}

void measure(const Options &options, const MpmOptions &scene, int threads,
             Row &row) {
  Device device = Device::open(options.device, {.threads = threads});
  MpmScene<float> mpm(device, scene);
  row.set("primal_ms",
          steadyMilliseconds(options, device, [&] { mpm.primal(); }));
  device.synchronize();
  device.reset_peak_bytes();
  size_t before = device.current_bytes();
  mpm.seed();
  row.set("gradient_ms",
          steadyMilliseconds(options, device, [&] { mpm.gradient(); }));
  row.set("graph_ms",
          graphMilliseconds(options, device, [&] { mpm.gradient(); }));
  size_t heap = device.current_bytes() - before;
  row.set("heap_bytes", double(heap));
  row.set("saved_bytes", double(device.peak_bytes() - before));
  double records = double(mpm.activeCells()) * mpm.recordBytes();
  row.set("active", double(mpm.activeCells()));
  row.set("record_bytes", mpm.recordBytes());
  row.set("allowed_bytes", std::min(30e6, 1.1 * records));
  Statistics start = device.statistics();
  mpm.gradient();
  Statistics end = device.statistics();
  row.set("launches", double(end.launches - start.launches));
  row.set("synchronizations",
          double(end.synchronizations - start.synchronizations));
}

/// In double, where differences are exact enough.
void addDifferences(const Options &options, MpmOptions scene, int threads,
                    Row &row) {
  scene.active = std::min(scene.active, 0.02);
  Device device = Device::open(options.device, {.threads = threads});
  auto found = MpmScene<double>(device, scene).differences(1e-6);
  row.set("rel_err", found.relative);
  row.set("judged", double(found.judged));
  row.set("kinks", double(found.kinks));
}

void mpmGrid(const Options &options, Results &results) {
  std::vector<MpmOptions> scenes;
  for (int colliders : options.smoke ? std::vector{4} : std::vector{1, 4, 16})
    for (double active : {0.005, 0.08, 1.0})
      scenes.push_back({.colliders = colliders, .active = active});
  scenes.push_back({.colliders = 4, .active = 0.08, .moving = true});
  for (MpmOptions &scene : scenes) {
    if (options.smoke)
      scene.cells = {17, 17, 9, 2};
    for (int threads : options.threads) {
      Row &row = results.add(nameOf(scene), threads);
      measure(options, scene, threads, row);
      if (!options.timesOnly)
        addDifferences(options, scene, threads, row);
    }
  }
}

Registration registration("mpm-grid",
                          "a grid of which few cells have mass, with colliders",
                          mpmGrid);

} // namespace
} // namespace costate::bench
