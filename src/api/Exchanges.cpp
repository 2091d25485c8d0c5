/// Which all go where: halos, parts of a whole.

#include "api/Checked.h"
#include "api/Distributed.h"
#include "api/KernelImpl.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using namespace costate::distributed;

/// `own`: what this rank asks for.
static void addHalo(Transfer &transfer, const AnyArray &array,
                    const Described &own) {
  int axis = static_cast<int>(own.option(Axis));
  int64_t width = own.option(Width);
  bool periodic = own.option(Periodic);
  int rank = transfer.own, size = transfer.group->size();
  bool hasLower = periodic || rank > 0, hasUpper = periodic || rank + 1 < size;
  int lower = (rank + size - 1) % size, upper = (rank + 1) % size;
  int64_t end = own.shape()[static_cast<size_t>(axis)];
  if (hasLower)
    transfer.send({array, axis, width, lower}, width);
  if (hasUpper)
    transfer.send({array, axis, end - 2 * width, upper}, width);
  // In the order in which a rank that is on both sides sends.
  if (hasUpper)
    transfer.receive({array, axis, end - width, upper}, width);
  if (hasLower)
    transfer.receive({array, axis, 0, lower}, width);
}

static std::shared_ptr<Transfer> halosOf(const std::vector<AnyArray> &arrays,
                                         int axis, int64_t width, bool periodic,
                                         const Group &group, Loc loc) {
  if (arrays.empty())
    raise(ErrorCode::BadArgument,
          "a halo" + sourceText(loc) + " of no array; name one");
  auto result = std::make_shared<Transfer>("a halo", loc, group);
  for (const AnyArray &array : arrays) {
    Request request{.kind = Request::Halo, .array = array};
    request.axis = axis, request.width = width, request.periodic = periodic;
    std::vector<Described> all = agree(*group, array.device(), request, loc);
    addHalo(*result, array, all[static_cast<size_t>(group->rank())]);
  }
  return result;
}

Halo::Halo(const AnyArray &array, int axis, int64_t width, bool periodic,
           const Group &group, Loc loc)
    : Halo(std::vector<AnyArray>{array}, axis, width, periodic, group, loc) {}

Halo::Halo(const std::vector<AnyArray> &arrays, int axis, int64_t width,
           bool periodic, const Group &group, Loc loc)
    : Exchange(halosOf(arrays, axis, width, periodic, group, loc)) {}

/// The all of the root, one for each rank, in order.
static std::vector<std::pair<Slices, int64_t>>
partsOf(const AnyArray &whole, const std::vector<Described> &all) {
  std::vector<std::pair<Slices, int64_t>> parts;
  int64_t start = 0;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    int64_t extent = all[rank].shape(true)[0];
    parts.push_back({{whole, 0, start, static_cast<int>(rank)}, extent});
    start += extent;
  }
  return parts;
}

static std::vector<Described> agreeOnParts(Request::Kind kind,
                                           const AnyArray &whole,
                                           const AnyArray &part, int root,
                                           const Group &group, Loc loc) {
  Request request{.kind = kind, .array = whole, .part = part};
  request.root = root;
  if (group->rank() != root)
    request.array = AnyArray();
  return agree(*group, part.device(), request, loc);
}

static std::shared_ptr<Transfer> scatterOf(const AnyArray &whole,
                                           const AnyArray &part, int root,
                                           const Group &group, Loc loc) {
  auto all = agreeOnParts(Request::Scatter, whole, part, root, group, loc);
  auto result = std::make_shared<Transfer>("a scatter", loc, group);
  if (group->rank() == root)
    for (const auto &[slices, extent] : partsOf(whole, all))
      result->send(slices, extent);
  result->receive({part, 0, 0, root}, part.shape()[0]);
  return result;
}

static std::shared_ptr<Transfer> gatherOf(const AnyArray &part,
                                          const AnyArray &whole, int root,
                                          const Group &group, Loc loc) {
  auto all = agreeOnParts(Request::Gather, whole, part, root, group, loc);
  auto result = std::make_shared<Transfer>("a gather", loc, group);
  result->send({part, 0, 0, root}, part.shape()[0]);
  if (group->rank() == root)
    for (const auto &[slices, extent] : partsOf(whole, all))
      result->receive(slices, extent);
  return result;
}

Scatter::Scatter(const AnyArray &whole, const AnyArray &part,
                 const Group &group, int root, Loc loc)
    : Exchange(scatterOf(whole, part, root, group, loc)) {}

Gather::Gather(const AnyArray &part, const AnyArray &whole, const Group &group,
               int root, Loc loc)
    : Exchange(gatherOf(part, whole, root, group, loc)) {}
