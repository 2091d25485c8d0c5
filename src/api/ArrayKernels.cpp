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

static void copySlices(const Making &traced, Way way, int axis, Handle array,
                       Handle buffer,
                       const std::array<Handle, maxRank> &indices,
                       Handle start) {
  Place inBuffer = traced.at(buffer, indices);
  std::array<Handle, maxRank> moved = indices;
  Handle &along = moved[static_cast<size_t>(axis)];
  along = pure(Op::Add, DType::I64, {along, start}, traced.loc);
  Place inArray = traced.at(array, moved);
  bool into = way == Way::IntoBuffer;
  Handle value = load(into ? inArray : inBuffer, traced.loc);
  store(into ? inBuffer : inArray, value, traced.loc);
}

static Kernel makeSlices(DType type, int rank, int axis, Way way,
                         size_t count) {
  Making traced(way == Way::IntoBuffer ? "pack" : "unpack", type, rank);
  Handle array = traced.array();
  std::vector<Handle> buffers(count), starts(count);
  for (Handle &buffer : buffers)
    buffer = traced.array();
  for (Handle &start : starts)
    start = traced.number();
  std::array<Handle, maxRank> indices = traced.elements(buffers[0]);
  for (size_t k = 0; k < count; ++k)
    copySlices(traced, way, axis, array, buffers[k], indices, starts[k]);
  return traced.finish();
}

const Kernel &detail::slicesKernel(DType type, int rank, int axis, Way way,
                                   size_t count) {
  static auto *known = new Known<std::tuple<DType, int, int, Way, size_t>>;
  return known->find({type, rank, axis, way, count},
                     [&] { return makeSlices(type, rank, axis, way, count); });
}

static Kernel makeUnpack(DType type, int rank, int axis, int64_t start) {
  Making traced("unpack", type, rank);
  Handle array = traced.array(), buffer = traced.array();
  std::array<Handle, maxRank> indices = traced.elements(buffer);
  Handle known = constant(DType::I64, static_cast<uint64_t>(start), traced.loc);
  copySlices(traced, Way::OutOfBuffer, axis, array, buffer, indices, known);
  return traced.finish();
}

const Kernel &detail::unpackKernel(DType type, int rank, int axis,
                                   int64_t start) {
  static auto *known = new Known<std::tuple<DType, int, int, int64_t>>;
  return known->find({type, rank, axis, start},
                     [&] { return makeUnpack(type, rank, axis, start); });
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
