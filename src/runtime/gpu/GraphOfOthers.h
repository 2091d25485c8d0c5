#pragma once
/// Launches that somebody else captures. What they need besides their arguments
/// is in an engine of their own: the graph may run at any time, beside whatever
/// the device does then. It lives as long as the graph.

#include "runtime/gpu/CapturingDriver.h"
#include "runtime/gpu/Launch.h"

#include <utility>

namespace costate::runtime::gpu {

/// Work of this thread stands elsewhere while it lives.
class Excursion {
public:
  Excursion(Driver &driver, Place place)
      : begun(driver.goTo(place)), driver(driver) {}
  ~Excursion() { (void)end(); }
  Excursion(const Excursion &) = delete;

  const Result<> begun;
  Result<> end() {
    return std::exchange(isAway, false) ? driver.goTo(Place::Usual)
                                        : Result<>();
  }

private:
  Driver &driver;
  bool isAway = true;
};

class GraphOfOthers {
public:
  GraphOfOthers(const Engine &device, Sorting sorting)
      : engine(device.memory.real, device.memory.budget.left(),
               device.heapBudget, sorting) {}
  ~GraphOfOthers();
  GraphOfOthers(const GraphOfOthers &) = delete;

  /// To be called while the stream in use is captured; what launches of
  /// `device` have learned is known. CannotCapture if it has to wait.
  Result<LaunchReport> launch(const Engine &device,
                              const LaunchRequest &request);
  /// Memory that its work has used, and that nobody else needs.
  void keep(std::byte *address) { addresses.push_back(address); }
  /// What its launches have run into; once.
  Result<> failure() { return engine.tiles.failure(); }

private:
  Result<> learn(const Engine &device,
                 const std::shared_ptr<const DeviceCode> &code);
  Result<> rehearse(const Engine &device, CapturingDriver &driver,
                    const LaunchRequest &request);
  void keepScratch();

  Engine engine;
  std::vector<std::shared_ptr<void>> scratch;
  std::vector<std::byte *> addresses;
};

} // namespace costate::runtime::gpu
