#pragma once
/// What distributed launches are made of.

#include "costate/custom_launch.h"
#include "costate/device.h"
#include "costate/distributed.h"
#include "costate/kernel.h"

namespace costate::detail {

using distributed::Communicator;
using distributed::Group;
using distributed::Message;
using distributed::SumOptions;

/// What a rank asks for; ranks tell each other.
struct Request {
  enum Kind : int64_t { Sum, Halo, Scatter, Gather };
  Kind kind;
  AnyArray array = {}; ///< none: of a rank that has no `whole`
  AnyArray part = {};  ///< of Scatter and Gather
  int64_t axis = 0, width = 0, periodic = 0, root = 0;
  int64_t ordered = 0, replicated = 0;
};

/// The same as numbers.
struct Described {
  static constexpr size_t count = 32;
  std::array<int64_t, count> numbers{};

  explicit Described(const Request &request);
  Described() = default;
  Request::Kind kind() const { return static_cast<Request::Kind>(numbers[0]); }
  int64_t option(size_t number) const { return numbers[1 + number]; }
  /// Of the array, or of the part.
  DType dtype(bool part = false) const;
  bool has(bool part = false) const { return at(part)[0] >= 0; }
  std::vector<int64_t> shape(bool part = false) const;
  std::string text() const;

private:
  std::span<const int64_t> at(bool part) const {
    return std::span(numbers).subspan(part ? 20 : 8, 12);
  }
};

enum Option : size_t { Axis, Width, Periodic, Root, Ordered, Replicated };

/// What all ranks ask for. Error(BadArgument) on all of them if it does not fit
/// together.
std::vector<Described> agree(Communicator &group, const Device &device,
                             const Request &own, Loc loc);

/// The sum takes the place of the elements, added in the order of ranks.
void sumInOrder(Communicator &group, AnyArray array);

/// Makes `body`, which writes the arrays `written`, a step of the graph that
/// this thread captures; `what` completes "a graph cannot repeat".
/// CannotCapture if that group cannot be in one.
void captureExchange(const Group &group, const Device &device,
                     const std::string &what, std::vector<AnyArray> written,
                     std::function<void()> body);

/// Where elements go to another rank, or come from one.
struct Slices {
  AnyArray array;
  int axis = 0;
  int64_t start = 0;
  int peer = 0;
  AnyArray buffer = {};
};

/// Copies all to buffers, exchanges these, and copies buffers to all.
/// Messages of a rank to itself are one buffer.
struct Transfer : std::enable_shared_from_this<Transfer> {
  Transfer(std::string name, Loc loc, Group group)
      : name(std::move(name)), loc(loc), group(std::move(group)),
        own(this->group->rank()) {}

  /// `extent` slices from `start` on of `array`.
  void send(const Slices &slices, int64_t extent);
  void receive(const Slices &slices, int64_t extent);

  void start(Mode mode);
  void finish(Mode mode);
  void run(Mode mode);
  /// The gradients of these, of `finish` before that of `start`.
  void finishGrad();
  void startGrad();
  void grad();

  const std::string name;
  const Loc loc;
  const Group group;
  const int own; ///< rank

private:
  using Which = AnyArray (*)(const AnyArray &);
  using Wait = std::function<void()>;
  using Body = std::function<void()>;

  /// Messages on their way.
  struct Begun {
    Begun();
    bool isHere() const;
    bool isForgotten() const { return inGraph && graph.expired(); }

    const std::shared_ptr<Wait> wait = std::make_shared<Wait>();
    bool inGraph;
    std::weak_ptr<const void> graph; ///< that they stand in
  };

  AnyArray bufferFor(const Slices &slices, int64_t extent) const;
  void pack(Mode mode) const;
  void unpack(Mode mode) const;
  std::vector<Message> messages(const std::vector<Slices> &all,
                                Which which) const;
  bool isAlone() const;
  /// One of the arrays; there is none on a rank that has no neighbours.
  const AnyArray &first() const;
  bool hasGrad() const, hasDual() const;
  std::vector<AnyArray> received(Mode mode) const;
  Wait begin(Mode mode) const;
  Wait beginBack() const;
  void clearReceived() const;
  CustomLaunch launch(const char *part) const;
  void launchIn(Mode mode, const char *part, const Body &gradient,
                const std::function<void(Mode)> &body);
  void gradient(const Body &body);
  void open(std::optional<Begun> &begun);
  std::shared_ptr<Wait> close(std::optional<Begun> &begun, const char *missing);

  std::vector<Slices> sends, receives;
  std::optional<Begun> pending, pendingBack;
};

/// A sum over ranks in place.
struct RankSum {
  AnyArray array;
  Group group;
  SumOptions options;
  Loc loc;

  void sum(const AnyArray &one) const;
  /// The same, or a step of the graph that this thread captures.
  void call(const std::vector<AnyArray> &all) const;
  CustomLaunch launch(const std::shared_ptr<RankSum> &self) const;
};

} // namespace costate::detail
