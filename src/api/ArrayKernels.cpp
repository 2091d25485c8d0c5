#include "api/ArrayKernels.h"

using namespace costate;
using namespace costate::detail;

namespace {
/// The parameters of a kernel that is traced, and where it is.
struct Making {
  Making(const char *name, DType type, int rank)
      : session(name, loc), type(type), rank(rank) {}

  Handle array() {
    session.parameter();
    return session.array(type, rank);
  }
  Handle number() {
    session.parameter();
    return session.scalar(DType::I64);
  }
  Place at(Handle array, const std::array<Handle, maxRank> &indices) const {
    return {array, type, rank, indices};
  }
  /// Begins the range of all elements.
  std::array<Handle, maxRank> elements(Handle array) const {
    std::vector<Handle> extents;
    for (int dim = 0; dim < rank; ++dim)
      extents.push_back(extent(array, rank, dim, loc));
    std::array<Handle, maxRank> indices;
    if (rank > 0)
      beginRange(extents, indices.data(), loc);
    return indices;
  }
  Kernel finish() {
    if (rank > 0)
      end();
    return make_kernel(*session.finish(), {});
  }

  Loc loc = Loc::current();
  Session session;
  DType type;
  int rank;
};

/// Kernels by what they are made for.
template <class Key> class Known {
public:
  template <class Make> const Kernel &find(const Key &key, Make make) {
    std::lock_guard lock(mutex);
    auto place = kernels.find(key);
    if (place == kernels.end())
      place = kernels.emplace(key, make()).first;
    return place->second;
  }

private:
  std::mutex mutex;
  std::map<Key, Kernel> kernels;
};
} // namespace

static Kernel makeSlices(DType type, int rank, int axis, Way way) {
  bool into = way == Way::IntoBuffer;
  Making traced(into ? "pack" : "unpack", type, rank);
  Handle array = traced.array(), buffer = traced.array();
  Handle start = traced.number();
  std::array<Handle, maxRank> indices = traced.elements(buffer);
  Place inBuffer = traced.at(buffer, indices);
  size_t along = static_cast<size_t>(axis);
  indices[along] =
      pure(Op::Add, DType::I64, {indices[along], start}, traced.loc);
  Place inArray = traced.at(array, indices);
  if (into)
    store(inBuffer, load(inArray, traced.loc), traced.loc);
  else
    store(inArray, load(inBuffer, traced.loc), traced.loc);
  return traced.finish();
}

const Kernel &detail::slicesKernel(DType type, int rank, int axis, Way way) {
  static auto *known = new Known<std::tuple<DType, int, int, Way>>;
  return known->find({type, rank, axis, way},
                     [&] { return makeSlices(type, rank, axis, way); });
}

static Kernel makeWhole(DType type, int rank, Store how) {
  Making traced(how == Store::Add ? "add" : "copy", type, rank);
  Handle target = traced.array(), source = traced.array();
  std::array<Handle, maxRank> indices = traced.elements(source);
  Place to = traced.at(target, indices);
  Handle value = load(traced.at(source, indices), traced.loc);
  if (how == Store::Add)
    value = pure(Op::Add, type, {load(to, traced.loc), value}, traced.loc);
  store(to, value, traced.loc);
  return traced.finish();
}

const Kernel &detail::wholeKernel(DType type, int rank, Store how) {
  static auto *known = new Known<std::tuple<DType, int, Store>>;
  return known->find({type, rank, how},
                     [&] { return makeWhole(type, rank, how); });
}
