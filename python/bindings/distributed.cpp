#include "bindings/Bindings.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>
#include <nanobind/trampoline.h>

namespace costate::python {

using namespace distributed;
using nb::literals::operator""_a;
using Release = nb::call_guard<GilRelease>;
using Pairs = std::vector<std::pair<int, AnyArray>>;

static Pairs pairsOf(const std::vector<Message> &messages) {
  Pairs pairs;
  for (const Message &message : messages)
    pairs.emplace_back(message.peer, message.array);
  return pairs;
}

static std::vector<Message> messagesOf(const Pairs &pairs) {
  std::vector<Message> messages;
  for (const auto &[peer, array] : pairs)
    messages.push_back({peer, array});
  return messages;
}

namespace {
/// With messages that Python knows.
struct OfPairs : Communicator {
  virtual std::function<void()> exchangePairs(Pairs sends, Pairs receives) = 0;
  std::function<void()> exchange(std::vector<Message> sends,
                                 std::vector<Message> receives) override {
    return exchangePairs(pairsOf(sends), pairsOf(receives));
  }
};

/// A class of Python.
struct OfPython : OfPairs {
  NB_TRAMPOLINE(OfPairs);

  int rank() const override { NB_OVERRIDE_PURE(rank); }
  int size() const override { NB_OVERRIDE_PURE(size); }
  void sum(AnyArray array) override { NB_OVERRIDE_PURE(sum, array); }
  void barrier() override { NB_OVERRIDE_PURE(barrier); }
  std::function<void()> exchangePairs(Pairs sends, Pairs receives) override {
    NB_OVERRIDE_PURE_NAME("exchange", exchangePairs, sends, receives);
  }
};
} // namespace

static std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

static void bindCommunicator(nb::module_ &module) {
  nb::class_<Communicator, OfPython>(
      module, "Communicator",
      "The ranks of a group, as one of them sees them; a base for classes of "
      "Python. Each rank calls its functions, in the same order.")
      .def(nb::init<>())
      .def("rank", &Communicator::rank)
      .def("size", &Communicator::size)
      .def("sum", &Communicator::sum, "array"_a, Release(),
           "The sum over ranks takes the place of the elements, on each rank.")
      .def(
          "exchange",
          [](Communicator &group, const Pairs &sends, const Pairs &receives) {
            GilRelease release;
            return group.exchange(messagesOf(sends), messagesOf(receives));
          },
          "sends"_a, "receives"_a,
          "Begins to send and to receive, (peer, array) each; what it returns "
          "waits for all of that. What one rank sends to another arrives in "
          "the order of its messages.")
      .def("barrier", &Communicator::barrier, Release());
  module.def(
      "in_process",
      [](int size, double timeout) {
        return in_process(size, milliseconds(timeout));
      },
      "size"_a, "timeout"_a = 30.0,
      "So many ranks in this process, each for a thread of its own. One whose "
      "object goes has left.");
  module.def(
      "nccl",
      [](const Device &device, const Group &others, double timeout) {
        GilRelease release;
        return nccl(device, others, milliseconds(timeout));
      },
      "device"_a, "others"_a, "timeout"_a = 30.0,
      "The same ranks, which send to each other by NCCL from then on.");
}

static void bindExchange(nb::module_ &module) {
  nb::class_<Exchange>(module, "Exchange",
                       "Copies of slices of arrays into buffers, their "
                       "exchange, and copies from buffers into slices.")
      .def("__call__", &Exchange::operator(), Release())
      .def("grad", &Exchange::grad, Release())
      .def("jvp", &Exchange::jvp, Release())
      .def("start", &Exchange::start, Release())
      .def("finish", &Exchange::finish, Release())
      .def("start_jvp", &Exchange::start_jvp, Release())
      .def("finish_jvp", &Exchange::finish_jvp, Release())
      .def("finish_grad", &Exchange::finish_grad, Release())
      .def("start_grad", &Exchange::start_grad, Release());
  nb::class_<Halo, Exchange>(module, "Halo")
      .def(
          "__init__",
          [](Halo *self, const std::vector<AnyArray> &arrays, int axis,
             int64_t width, bool periodic, const Group &group) {
            Loc loc = callerLoc();
            GilRelease release;
            new (self) Halo(arrays, axis, width, periodic, group, loc);
          },
          "arrays"_a, nb::kw_only(), "axis"_a, "width"_a, "periodic"_a,
          "group"_a);
}

static void bindParts(nb::module_ &module) {
  nb::class_<Scatter, Exchange>(module, "Scatter")
      .def(
          "__init__",
          [](Scatter *self, const std::optional<AnyArray> &whole,
             const AnyArray &part, int root, const Group &group) {
            Loc loc = callerLoc();
            GilRelease release;
            new (self)
                Scatter(whole.value_or(AnyArray()), part, group, root, loc);
          },
          "whole"_a.none(), "part"_a, nb::kw_only(), "root"_a, "group"_a);
  nb::class_<Gather, Exchange>(module, "Gather")
      .def(
          "__init__",
          [](Gather *self, const AnyArray &part,
             const std::optional<AnyArray> &whole, int root,
             const Group &group) {
            Loc loc = callerLoc();
            GilRelease release;
            new (self)
                Gather(part, whole.value_or(AnyArray()), group, root, loc);
          },
          "part"_a, "whole"_a.none(), nb::kw_only(), "root"_a, "group"_a);
}

static void bindSum(nb::module_ &module) {
  nb::class_<AllReduce>(module, "AllReduce")
      .def(
          "__init__",
          [](AllReduce *self, const AnyArray &array, const Group &group,
             bool ordered, bool replicated) {
            Loc loc = callerLoc();
            GilRelease release;
            new (self) AllReduce(array, group, {ordered, replicated}, loc);
          },
          "array"_a, "group"_a, "ordered"_a, "replicated"_a)
      .def("__call__", &AllReduce::operator(), Release())
      .def("grad", &AllReduce::grad, Release())
      .def("jvp", &AllReduce::jvp, Release());
  module.def(
      "sum_over_ranks",
      [](const AnyArray &array, const Group &group, bool ordered) {
        Loc loc = callerLoc();
        GilRelease release;
        sum_over_ranks(array, group, {.ordered = ordered}, loc);
      },
      "array"_a, "group"_a, "ordered"_a, "No part of a recording.");
}

void bindDistributed(nb::module_ &module) {
  bindCommunicator(module);
  bindExchange(module);
  bindParts(module);
  bindSum(module);
}

} // namespace costate::python
