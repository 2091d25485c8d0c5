/// Which all go where: halos, parts of a whole.

#include "api/Distributed.h"

using namespace costate;
using namespace costate::detail;
using namespace costate::distributed;

static std::shared_ptr<Transfer> haloOf(const AnyArray &array, int axis,
                                        int64_t width, bool periodic,
                                        const Group &group, Loc loc) {
  Request request{.kind = Request::Halo, .array = array};
  request.axis = axis, request.width = width, request.periodic = periodic;
  std::vector<Described> all = agree(*group, array.device(), request, loc);
  auto result = std::make_shared<Transfer>("a halo", loc, group);
  int rank = group->rank(), size = group->size();
  bool hasLower = periodic || rank > 0, hasUpper = periodic || rank + 1 < size;
  int lower = (rank + size - 1) % size, upper = (rank + 1) % size;
  const Described &own = all[static_cast<size_t>(rank)];
  int64_t end = own.shape()[static_cast<size_t>(axis)];
  if (hasLower)
    result->send({array, axis, width, lower}, width);
  if (hasUpper)
    result->send({array, axis, end - 2 * width, upper}, width);
  // In the order in which a rank that is on both sides sends.
  if (hasUpper)
    result->receive({array, axis, end - width, upper}, width);
  if (hasLower)
    result->receive({array, axis, 0, lower}, width);
  return result;
}

Halo::Halo(const AnyArray &array, int axis, int64_t width, bool periodic,
           const Group &group, Loc loc)
    : Exchange(haloOf(array, axis, width, periodic, group, loc)) {}

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
