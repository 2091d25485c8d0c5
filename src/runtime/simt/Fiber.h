#pragma once
/// A function with a stack of its own that can stop in the middle.

#include <boost/context/fiber.hpp>
#include <functional>

namespace costate::runtime::simt {

/// Lives and runs on one OS thread. Must have ended before it dies.
class Fiber {
public:
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber &) = delete;

  /// Runs it until it suspends or ends.
  void resume();
  /// Called by its body: resume() returns.
  void suspend();
  bool hasEnded() const { return !inside; }

private:
  /// For the address sanitizer.
  struct Stack {
    const void *bottom = nullptr;
    size_t size = 0;
    void *fake = nullptr;
  };

  boost::context::fiber run(boost::context::fiber &&resumer);

  std::function<void()> body;
  Stack own, resumers;
  boost::context::fiber inside, outside;
};

} // namespace costate::runtime::simt
