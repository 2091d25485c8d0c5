/// Do the requests of all ranks fit together?

#include "api/Checked.h"
#include "api/Distributed.h"
#include "api/KernelImpl.h"
#include "api/Recording.h"
#include "runtime/ArrayStorage.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;

/// dtype (-1: no array), flags, rank, extents
static void describe(const AnyArray &array, std::span<int64_t> at) {
  at[0] = -1;
  if (!array)
    return;
  at[0] = static_cast<int64_t>(array.dtype());
  at[1] = array.has_grad() + 2 * array.has_dual();
  at[2] = array.rank();
  std::vector<int64_t> shape = array.shape();
  std::copy(shape.begin(), shape.end(), at.begin() + 3);
}

Described::Described(const Request &request)
    : numbers{request.kind,      request.axis, request.width,
              request.periodic,  request.root, request.ordered,
              request.replicated} {
  describe(request.array, std::span(numbers).subspan(8, 12));
  describe(request.part, std::span(numbers).subspan(20, 12));
}

DType Described::dtype(bool part) const {
  return static_cast<DType>(at(part)[0]);
}

std::vector<int64_t> Described::shape(bool part) const {
  std::span<const int64_t> numbers = at(part);
  return {numbers.begin() + 3, numbers.begin() + 3 + numbers[2]};
}

static std::string arrayText(const Described &one, bool part) {
  if (!one.has(part))
    return "no array";
  return std::string("an array of ") + nameOf(one.dtype(part)) + " of shape " +
         runtime::shapeText(one.shape(part));
}

std::string Described::text() const {
  auto number = [this](Option which) { return std::to_string(option(which)); };
  switch (kind()) {
  case Request::Sum:
    return std::string("a sum of ") + arrayText(*this, false) +
           (option(Ordered) ? ", ordered" : "") +
           (option(Replicated) ? ", replicated" : "");
  case Request::Halo:
    return "a halo of width " + number(Width) + " along axis " + number(Axis) +
           (option(Periodic) ? ", periodic, of " : " of ") +
           arrayText(*this, false);
  case Request::Scatter:
  case Request::Gather:
    return (kind() == Request::Scatter ? "a scatter from rank "
                                       : "a gather to rank ") +
           number(Root) + " with the part " + arrayText(*this, true) +
           " and the whole " + arrayText(*this, false);
  }
  return "something else";
}

[[noreturn]] static void refuse(size_t rank, const Described &asked,
                                const std::string &why, Loc loc) {
  raise(ErrorCode::BadArgument, "rank " + std::to_string(rank) + " asks for " +
                                    asked.text() + sourceText(loc) + "; " +
                                    why);
}

/// What does not depend on other ranks.
static std::string problem(const Described &one, size_t size) {
  if (one.kind() == Request::Sum)
    return one.dtype() == DType::Bool ? "truth values have no sum; use integers"
                                      : "";
  if (one.kind() == Request::Halo) {
    int64_t axis = one.option(Axis), width = one.option(Width);
    std::vector<int64_t> shape = one.shape();
    if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
      return "the array has no such axis";
    if (width < 1)
      return "a halo has a width from 1 on";
    int64_t own = shape[static_cast<size_t>(axis)] - 2 * width;
    if (own < width)
      return "without its halo that is a part of " +
             std::to_string(std::max<int64_t>(own, 0)) +
             " slices, thinner than the halo; use fewer ranks or a thinner "
             "halo";
    return "";
  }
  int64_t root = one.option(Root);
  if (root < 0 || root >= static_cast<int64_t>(size))
    return "there are " + std::to_string(size) + " ranks, counted from 0";
  return one.shape(true).empty() ? "a part has at least one dimension" : "";
}

/// Whether two requests are those of one call, if extents along the axis may
/// differ.
static bool areAlike(const Described &a, const Described &b) {
  bool isPart = a.kind() == Request::Scatter || a.kind() == Request::Gather;
  Described first = a, second = b;
  size_t begin = isPart ? 20 : 8;
  if (a.kind() == Request::Halo || isPart)
    for (Described *one : {&first, &second})
      one->numbers[begin + 3 +
                   static_cast<size_t>(isPart ? 0 : a.option(Axis))] = 0;
  auto same = [&](size_t from, size_t to) {
    return std::equal(first.numbers.begin() + from, first.numbers.begin() + to,
                      second.numbers.begin() + from);
  };
  return same(0, 8) && same(begin, begin + 12);
}

/// Of Scatter and Gather: whether the parts make up the whole.
static void requireWhole(const std::vector<Described> &all, Loc loc) {
  size_t root = static_cast<size_t>(all[0].option(Root));
  const Described &holder = all[root];
  if (!holder.has())
    refuse(root, holder, "that rank needs the whole", loc);
  int64_t extent = 0;
  for (const Described &one : all)
    extent += one.shape(true)[0];
  std::vector<int64_t> needed = holder.shape(true);
  needed[0] = extent;
  bool fits = holder.dtype() == holder.dtype(true) &&
              holder.shape() == needed &&
              holder.numbers[9] == holder.numbers[21];
  if (!fits)
    refuse(root, holder,
           "the parts of all ranks make up an array of shape " +
               runtime::shapeText(needed) +
               "; pass a whole of this shape, and of the dtype of the parts, "
               "with gradients or tangents where they have some",
           loc);
}

static void require(const std::vector<Described> &all, Loc loc) {
  for (size_t rank = 0; rank < all.size(); ++rank) {
    bool comparable = all[rank].kind() == all[0].kind();
    if (comparable)
      if (std::string why = problem(all[rank], all.size()); !why.empty())
        refuse(rank, all[rank], why, loc);
    if (!comparable || !areAlike(all[0], all[rank]))
      refuse(rank, all[rank],
             "rank 0 asks for " + all[0].text() +
                 "; all ranks have to ask for the same, with gradients and "
                 "tangents on all of them or on none",
             loc);
  }
  if (all[0].kind() == Request::Scatter || all[0].kind() == Request::Gather)
    requireWhole(all, loc);
}

static std::vector<Described> collect(Communicator &group, const Device &device,
                                      const Described &own) {
  size_t size = static_cast<size_t>(group.size());
  size_t rank = static_cast<size_t>(group.rank());
  if (size == 1)
    return {own};
  Array<int64_t> shared = device.array<int64_t>({size, Described::count});
  std::vector<int64_t> numbers(size * Described::count);
  std::copy(own.numbers.begin(), own.numbers.end(),
            numbers.begin() + static_cast<int64_t>(rank * Described::count));
  shared.from_host(numbers);
  group.sum(shared);
  numbers = shared.to_host();
  std::vector<Described> all(size);
  for (size_t k = 0; k < size; ++k)
    std::copy_n(numbers.begin() + static_cast<int64_t>(k * Described::count),
                Described::count, all[k].numbers.begin());
  return all;
}

std::vector<Described> detail::agree(Communicator &group, const Device &device,
                                     const Request &own, Loc loc) {
  RecordingPause pause;
  std::vector<Described> all = collect(group, device, Described(own));
  require(all, loc);
  return all;
}
