#include "Labels.h"
#include "conformance/Errors.h"
#include "costate/costate.h"

COSTATE_LABEL("*.Graphs*", waits);

using namespace costate;
using costate::test::expectError;

namespace {

/// Expects that every use of a handle that has been moved from is refused.
void expectRefused(const std::string &text,
                   const std::vector<std::function<void()>> &uses) {
  for (const auto &use : uses)
    expectError(ErrorCode::BadArgument, {text}, use);
}
} // namespace

TEST(MovedFrom, DevicesAreRefused) {
  Device d = Device::open("cpu", {.threads = 1}), other = std::move(d);
  bool isReleased = false;
  double memory[3];
  auto release = [&] { isReleased = true; };
  expectRefused(
      "this Device has been moved from",
      {[&] { d.array<double>({3}); }, [&] { d.array<Vec<double, 3>>({3}); },
       [&] { d.array(DType::F32, {3}); },
       [&] { d.adopt(DType::F64, {3}, {memory, release}); },
       [&] { d.synchronize(); }, [&] { d.use_stream(nullptr); },
       [&] { d.use_own_stream(); }, [&] { d.capture([] {}); },
       [&] { d.name(); }, [&] { d.threads(); }, [&] { d.current_bytes(); },
       [&] { d.peak_bytes(); }, [&] { d.memory_limit(); },
       [&] { d.reset_peak_bytes(); }, [&] { d.statistics(); },
       [&] { d.reset_statistics(); }, [&] { (void)d.shared(); }});
  EXPECT_TRUE(isReleased);
  EXPECT_FALSE(d == other);
  Device copy = d, again = std::move(copy);
  d = std::move(other);
  EXPECT_EQ(d.threads(), 1);
}

TEST(MovedFrom, TapesAreRefused) {
  Device device = Device::open("cpu", {.threads = 1});
  Array<double> x = device.array<double>({3}, grad);
  Tape tape, other = std::move(tape);
  expectRefused("this `Tape` has been moved from",
                {[&] { (void)tape.record(); }, [&] { tape.backward(); },
                 [&] { tape.backward(x); }, [&] { tape.never_copy(x); },
                 [&] { tape.clear(); }, [&] { tape.size(); },
                 [&] { tape.report(); }});
  {
    auto recording = other.record(), moved = std::move(recording);
    x.fill(1);
    tape = std::move(other); // goes on
    x.fill(2);
  }
  EXPECT_EQ(tape.size(), 2u);
}

TEST(MovedFrom, GraphsAreRefused) {
  Device device = Device::open("cpu", {.threads = 1});
  Array<double> x = device.array<double>({3}, grad);
  Graph graph = device.capture([&] { x.fill(1); }), other = std::move(graph);
  expectRefused("this Graph has been moved from",
                {[&] { graph.replay(); }, [&] { graph.size(); }});
  graph = std::move(other);
  graph.replay();
  EXPECT_EQ(graph.size(), 1u);
  Graph none;
  none.replay();
  EXPECT_EQ(none.size(), 0u);
}

TEST(MovedFrom, KernelsAreRefused) {
  Device device = Device::open("cpu", {.threads = 1});
  Array<double> x = device.array<double>({3}, grad);
  Kernel scale = kernel("scale", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) *= 2.0; });
  });
  Kernel other = std::move(scale);
  expectRefused("this kernel is empty",
                {[&] { scale(x); }, [&] { scale.grad(x); },
                 [&] { scale.grad(initial_state, x); }, [&] { scale.jvp(x); },
                 [&] { scale.gradient(); }, [&] { scale.tangent(); },
                 [&] { (void)scale.name(); }, [&] { scale.report(); },
                 [&] { scale.arguments(); }, [&] { scale.ir(); },
                 [&] { (void)scale.shared(); },
                 [&] { check_gradient(scale, x); }});
  scale = std::move(other);
  scale(x);
}

TEST(MovedFrom, ArraysAreRefused) {
  Device device = Device::open("cpu", {.threads = 1});
  Array<double> x = device.array<double>({3}, grad | dual);
  Array<double> other = std::move(x);
  Kernel scale = kernel("scale", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) *= 2.0; });
  });
  EXPECT_FALSE(x);
  Tape tape;
  expectRefused("no storage", {[&] { x.fill(1); },
                               [&] { x.from_host(std::vector<double>(3)); },
                               [&] { x.to_host(); },
                               [&] { (void)x.data(); },
                               [&] { x.dtype(); },
                               [&] { x.rank(); },
                               [&] { (void)x.shape(); },
                               [&] { (void)x.form(); },
                               [&] { x.component_dim(); },
                               [&] { x.size(); },
                               [&] { x.size(0); },
                               [&] { x.bytes(); },
                               [&] { x.device(); },
                               [&] { x.has_grad(); },
                               [&] { x.has_dual(); },
                               [&] { x.grad(); },
                               [&] { x.dual(); },
                               [&] { x.version(); },
                               [&] { x.written_outside(); },
                               [&] { x.lend(false); },
                               [&] { x.lend(true); },
                               [&] { tape.never_copy(x); }});
  expectRefused("without storage", {[&] { scale(x); }});
  x = std::move(other);
  EXPECT_EQ(x.size(), 3);
}
