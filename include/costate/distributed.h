#pragma once
/// Programs of several ranks: sums over them, halos, parts, and their exact
/// derivatives.

#include "costate/array.h"

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace costate::detail {
struct Transfer;
struct RankSum;
} // namespace costate::detail

namespace costate::distributed {

/// A buffer that goes to a rank, or comes from it.
struct Message {
  int peer;
  AnyArray array;
};

/// The ranks of a group, as one of them sees them. All functions here are
/// *collective*: each rank of the group calls them, in the same order.
///
/// Implementations raise Error(RankLost) where a rank has ended, or has not
/// answered within their timeout.
class Communicator {
public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The sum over ranks takes the place of the elements, on each rank.
  virtual void sum(AnyArray array) = 0;
  /// Begins to send and to receive; what it returns waits for all of that.
  /// What one rank sends to another arrives in the order of its messages. No
  /// peer is the rank itself. Until then nobody else uses the arrays.
  virtual std::function<void()> exchange(std::vector<Message> sends,
                                         std::vector<Message> receives) = 0;
  virtual void barrier() = 0;

  /// Whether a graph of `device` can repeat sums and exchanges: on `cpu` by
  /// calling them at each replay, on a GPU if they only queue work of it.
  virtual bool fits_graphs(const Device &device) const;
  /// Called after each replay of a graph that has some.
  virtual void replayed() {}
};

using Group = std::shared_ptr<Communicator>;

/// So many ranks in this process: each is used by a thread of its own, with
/// arrays of any device. One whose last handle goes has left.
std::vector<Group>
in_process(int size,
           std::chrono::milliseconds timeout = std::chrono::seconds(30));

/// The ranks of `others`, each with a `cuda` device of its own, which then send
/// to each other by NCCL: from where arrays are, beside other work of the
/// device, in graphs too, and the host does not wait. `others` tells them where
/// to meet, and is not used after that. NCCL (`libnccl.so.2`) is loaded here.
///
/// A rank that does not answer is lost after `timeout`, and then whatever waits
/// for the device is Error(RankLost), as long as the group lives.
/// Error(BadArgument) for another device, Error(NoDevice) without NCCL, both on
/// all ranks.
Group nccl(const Device &device, const Group &others,
           std::chrono::milliseconds timeout = std::chrono::seconds(30));

struct SumOptions {
  /// Adds in the order of ranks, so that the bits depend on no timing; each
  /// rank gets the arrays of all others for that.
  bool ordered = false;
  /// What follows is the same on all ranks and counts once, such as a loss
  /// that all of them compute from the sum: adjoints then pass as they are.
  /// Without, the derivative is that of the sum over ranks of what each of
  /// them computes, and all-reduce is its own adjoint.
  bool replicated = false;
};

/// Replaces an array on each rank by the sum over ranks. Under a `Tape` each
/// call is an entry. The constructor is collective, too: Error(BadArgument) on
/// all ranks if they differ in dtype, shape or options.
class AllReduce {
public:
  AllReduce(const AnyArray &array, const Group &group, SumOptions options = {},
            Loc loc = std::source_location::current());
  void operator()() const;
  /// Replaces the adjoint by that before the call.
  void grad() const;
  /// The same for the values and for `.dual()`.
  void jvp() const;

private:
  std::shared_ptr<costate::detail::RankSum> impl;
};

/// What Halo, Scatter and Gather have in common: copies of slices of arrays
/// into buffers, their exchange, and copies from buffers into slices. Under a
/// `Tape` each of these is an entry; it keeps nothing but what has come from
/// other ranks, and only if it takes snapshots. Reverse mode sends adjoints
/// back: it adds them to those of what was read, and clears those of what was
/// overwritten.
class Exchange {
public:
  void operator()() const;
  void grad() const;
  void jvp() const;
  /// The same in two parts: what is launched between them and does not use what
  /// they write runs while messages are on their way, and so do its adjoints.
  /// Error(BadArgument) for a finish() without a start(). By hand the gradient
  /// of finish() comes first.
  void start() const;
  void finish() const;
  void start_jvp() const;
  void finish_jvp() const;
  void finish_grad() const;
  void start_grad() const;

protected:
  explicit Exchange(std::shared_ptr<costate::detail::Transfer> impl)
      : impl(std::move(impl)) {}

private:
  std::shared_ptr<costate::detail::Transfer> impl;
};

/// The first and last `width` slices of an array along an axis are its halo:
/// copies of slices next to it, which belong to the ranks before and after.
/// The rank before the first one is the last if the domain is periodic, else
/// that halo stays as it is. Error(BadArgument) on all ranks if they
/// differ in anything but the extent along the axis, or if a part is thinner
/// than the halo.
class Halo : public Exchange {
public:
  Halo(const AnyArray &array, int axis, int64_t width, bool periodic,
       const Group &group, Loc loc = std::source_location::current());
  /// Those of several arrays, in one exchange.
  Halo(const std::vector<AnyArray> &arrays, int axis, int64_t width,
       bool periodic, const Group &group,
       Loc loc = std::source_location::current());
};

/// The array `whole` of the rank `root` is cut along its first dimension, and
/// rank after rank gets its part. Other ranks pass no `whole`.
/// Error(BadArgument) on all ranks if shapes do not fit.
class Scatter : public Exchange {
public:
  Scatter(const AnyArray &whole, const AnyArray &part, const Group &group,
          int root = 0, Loc loc = std::source_location::current());
};

/// The other way round.
class Gather : public Exchange {
public:
  Gather(const AnyArray &part, const AnyArray &whole, const Group &group,
         int root = 0, Loc loc = std::source_location::current());
};

/// The sum over ranks takes the place of the elements. No part of a recording:
/// for what is reported, and for gradients.
void sum_over_ranks(const AnyArray &array, const Group &group,
                    SumOptions options = {},
                    Loc loc = std::source_location::current());

/// Adds up the gradients of arrays over ranks, such as those of weights that
/// all ranks have, after `backward`.
void sum_gradients(const std::vector<AnyArray> &arrays, const Group &group,
                   SumOptions options = {},
                   Loc loc = std::source_location::current());

} // namespace costate::distributed
