#include "bindings/Decompositions.h"
#include "bindings/Numbers.h"

#include "costate/detail/carried.h"
#include "costate/detail/group.h"
#include "costate/trace.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>

namespace costate::python {

using namespace detail;
using nb::literals::operator""_a;

namespace {

// Classes of their own, so that none is taken for another.
struct Value : Handle {
  Value(Handle handle = {}) : Handle(handle) {}
};
struct Variable : Handle {};
struct LocalArray : Handle {};
struct ArrayArgument : Handle {};

using Values = std::vector<Value>;

/// What a thread is tracing; the last one is the one that it traces into.
struct OpenSession {
  OpenSession(const char *name, Loc loc)
      : session(std::make_unique<Session>(name, loc)) {}
  std::unique_ptr<Session> session;
  std::atomic<bool> closed = false;
};

/// Sessions end in the order of a stack, on the thread that began them; objects
/// of Python end whenever and wherever.
class Trace {
public:
  Trace(std::string name, Loc loc)
      : name(std::move(name)),
        own(std::make_shared<OpenSession>(this->name.c_str(), loc)) {
    sessions().push_back(own);
  }
  ~Trace() { abandon(); }
  Trace(const Trace &) = delete;

  Session &session() const {
    dropClosed();
    if (own->closed)
      fail("has ended");
    if (sessions().empty() || sessions().back() != own)
      fail("is not what this thread traces: it is of another thread, or has "
           "another one inside that has not ended");
    return *own->session;
  }

  /// Whether a statement may have been recorded.
  mutable bool isEmpty = true;
  /// Once it is finished.
  std::vector<CarriedElement> carried;

  void abandon() {
    own->closed = true;
    dropClosed();
  }

private:
  static std::vector<std::shared_ptr<OpenSession>> &sessions() {
    static thread_local std::vector<std::shared_ptr<OpenSession>> all;
    return all;
  }
  static void dropClosed() {
    while (!sessions().empty() && sessions().back()->closed) {
      sessions().back()->session.reset();
      sessions().pop_back();
    }
  }
  [[noreturn]] void fail(const char *why) const {
    throw Error(ErrorCode::BadKernel,
                "the trace of kernel `" + name + "` " + why);
  }

  std::string name;
  std::shared_ptr<OpenSession> own;
};

} // namespace

static Place placeOf(ArrayArgument array, DType type, const Values &indices) {
  if (indices.size() > static_cast<size_t>(maxRank))
    throw Error(ErrorCode::BadKernel,
                "an array has at most " + std::to_string(maxRank) +
                    " dimensions; there are " + std::to_string(indices.size()) +
                    " indices");
  Place place{array, type, static_cast<int>(indices.size()), {}};
  std::copy(indices.begin(), indices.end(), place.indices.begin());
  return place;
}

static std::vector<Handle> handles(const Values &values) {
  return {values.begin(), values.end()};
}

static Values valuesOf(const std::vector<Handle> &handles) {
  return {handles.begin(), handles.end()};
}

static Value makeConstant(DType type, nb::handle number, Loc loc) {
  return withType(type, [&]<class T>(T) -> Value {
    std::optional<T> value = convert<T>(number);
    return value ? constant(type, bitsOf(*value), loc) : unfitting(type, loc);
  });
}

static Value makePure(Op op, DType type, const Values &operands, Loc loc) {
  const Values &a = operands;
  switch (a.size()) {
  case 1:
    return pure(op, type, {a[0]}, loc);
  case 2:
    return pure(op, type, {a[0], a[1]}, loc);
  case 3:
    return pure(op, type, {a[0], a[1], a[2]}, loc);
  }
  throw Error(ErrorCode::BadKernel, "an operation has 1 to 3 operands, not " +
                                        std::to_string(a.size()));
}

static Values range(const Values &extents, Loc loc) {
  std::vector<Handle> indices(extents.size());
  beginRange(handles(extents), indices.data(), loc);
  return valuesOf(indices);
}

static Values customArguments(const Values &inputs, Loc loc) {
  std::vector<Handle> arguments(inputs.size());
  beginCustom(handles(inputs), arguments.data(), loc);
  return valuesOf(arguments);
}

static Values partialsArguments(Value result, size_t count, Loc loc) {
  std::vector<Handle> arguments(count + 1);
  beginPartials(result, arguments.data(), loc);
  return valuesOf(arguments);
}

static Kernel finish(Trace &trace, KernelOptions options) {
  std::shared_ptr<TracedKernel> traced = trace.session().finish();
  trace.abandon();
  trace.carried = carriedElements(*traced);
  GilRelease release;
  return make_kernel(*traced, options);
}

/// A method that records: `function` without the trace.
template <class R, class... A> static auto recorded(R (*function)(A...)) {
  return [function](const Trace &trace, A... arguments) -> R {
    trace.session();
    trace.isEmpty = false;
    return function(std::forward<A>(arguments)...);
  };
}
template <class F> static auto recorded(F function) {
  return recorded(+function);
}

using TraceClass = nb::class_<Trace>;

static void bindValues(TraceClass &trace) {
  trace
      .def(
          "array",
          [](Trace &trace, DType type, int rank,
             std::optional<ElementForm> form, std::vector<int64_t> extents) {
            return ArrayArgument{trace.session().array(
                type, rank, form.value_or(ElementForm()), std::move(extents))};
          },
          "dtype"_a, "rank"_a, "form"_a = nb::none(),
          "extents"_a = std::vector<int64_t>(),
          "One more argument; all of them come before the first statement. "
          "`extents`: those that are known, -1 elsewhere.")
      .def(
          "scalar",
          [](Trace &trace, DType type) {
            return Value(trace.session().scalar(type));
          },
          "dtype"_a)
      .def("constant", recorded(makeConstant), "dtype"_a, "number"_a, "loc"_a,
           "A number; a mistake in the kernel if `dtype` does not have it.")
      .def("pure", recorded(makePure), "op"_a, "dtype"_a, "operands"_a, "loc"_a)
      .def("limit_order", recorded([](int order, const char *what, Loc loc) {
             limitOrder(order, what, loc);
           }),
           "order"_a, "what"_a, "loc"_a,
           "A function whose derivatives of higher order are not known.")
      .def("declare", recorded([](DType type, Value start, Loc loc) {
             return Variable{declare(type, start, loc)};
           }),
           "dtype"_a, "start"_a, "loc"_a)
      .def("read", recorded([](DType type, Variable variable, Loc loc) {
             return Value(read(type, variable, loc));
           }),
           "dtype"_a, "variable"_a, "loc"_a)
      .def("assign", recorded([](Variable variable, Value value, Loc loc) {
             assign(variable, value, loc);
           }),
           "variable"_a, "value"_a, "loc"_a)
      .def("declare_local", recorded([](DType type, int64_t size, Loc loc) {
             return LocalArray{declareLocal(type, size, loc)};
           }),
           "dtype"_a, "size"_a, "loc"_a, "A private array of zeros.")
      .def("load_local",
           recorded([](DType type, LocalArray local, Value index, Loc loc) {
             return Value(loadLocal(type, local, index, loc));
           }),
           "dtype"_a, "local"_a, "index"_a, "loc"_a)
      .def("store_local",
           recorded([](LocalArray local, Value index, Value value, Loc loc) {
             storeLocal(local, index, value, loc);
           }),
           "local"_a, "index"_a, "value"_a, "loc"_a);
}

/// Operations of blocks and warps have up to three operands.
static Value makeGroup(GroupOp op, DType type, const Values &operands,
                       Loc loc) {
  const Values &a = operands;
  switch (a.size()) {
  case 0:
    return group(op, type, {}, loc);
  case 1:
    return group(op, type, {a[0]}, loc);
  case 2:
    return group(op, type, {a[0], a[1]}, loc);
  case 3:
    return group(op, type, {a[0], a[1], a[2]}, loc);
  }
  throw Error(ErrorCode::BadKernel, "an operation has at most 3 operands");
}

static void bindGroups(TraceClass &trace) {
  trace
      .def("declare_shared", recorded([](DType type, int64_t size, Loc loc) {
             return LocalArray{declareShared(type, size, loc)};
           }),
           "dtype"_a, "size"_a, "loc"_a,
           "An array that the work items of a block share.")
      .def("update_shared",
           recorded(
               [](Op op, LocalArray shared, Value index, Value value, Loc loc) {
                 return Value(updateShared(op, shared, index, value, loc));
               }),
           "op"_a, "shared"_a, "index"_a, "value"_a, "loc"_a,
           "Atomically; what the element was.")
      .def("group", recorded(makeGroup), "op"_a, "dtype"_a, "operands"_a,
           "loc"_a, "`dtype`: of the result, if there is one.")
      .def("set_block_dim", recorded([](int64_t workItems, Loc loc) {
             setBlockDim(workItems, loc);
           }),
           "work_items"_a, "loc"_a, "Of the range just begun.");
}

static void bindAccesses(TraceClass &trace) {
  trace
      .def("extent",
           recorded([](ArrayArgument array, int rank, int dim, Loc loc) {
             return Value(extent(array, rank, dim, loc));
           }),
           "array"_a, "rank"_a, "dim"_a, "loc"_a)
      .def("load",
           recorded([](ArrayArgument array, DType type, const Values &indices,
                       Loc loc) {
             return Value(load(placeOf(array, type, indices), loc));
           }),
           "array"_a, "dtype"_a, "indices"_a, "loc"_a)
      .def("store",
           recorded([](ArrayArgument array, DType type, const Values &indices,
                       Value value, Loc loc) {
             store(placeOf(array, type, indices), value, loc);
           }),
           "array"_a, "dtype"_a, "indices"_a, "value"_a, "loc"_a)
      .def("update",
           recorded([](Op op, ArrayArgument array, DType type,
                       const Values &indices, Value value, Loc loc) {
             update(op, placeOf(array, type, indices), value, loc);
           }),
           "op"_a, "array"_a, "dtype"_a, "indices"_a, "value"_a, "loc"_a)
      .def("fetch",
           recorded([](Op op, ArrayArgument array, DType type,
                       const Values &indices, Value value, Loc loc) {
             return Value(fetch(op, placeOf(array, type, indices), value, loc));
           }),
           "op"_a, "array"_a, "dtype"_a, "indices"_a, "value"_a, "loc"_a,
           "The same as `update`, and the element before.")
      .def("exchange",
           recorded([](ArrayArgument array, DType type, const Values &indices,
                       Value value, Loc loc) {
             return Value(exchange(placeOf(array, type, indices), value, loc));
           }),
           "array"_a, "dtype"_a, "indices"_a, "value"_a, "loc"_a)
      .def("compare_exchange",
           recorded([](ArrayArgument array, DType type, const Values &indices,
                       Value expected, Value desired, Loc loc) {
             return Value(compareExchange(placeOf(array, type, indices),
                                          expected, desired, loc));
           }),
           "array"_a, "dtype"_a, "indices"_a, "expected"_a, "desired"_a,
           "loc"_a);
}

static void bindBlocks(TraceClass &trace) {
  trace
      .def("begin_if",
           recorded([](Value condition, Loc loc) { beginIf(condition, loc); }),
           "condition"_a, "loc"_a)
      .def("begin_else", recorded([](Loc loc) { beginElse(loc); }), "loc"_a)
      .def("begin_elif", recorded([](Loc loc) { beginElif(loc); }), "loc"_a,
           "The condition follows; then `begin_elif_body`.")
      .def("begin_elif_body", recorded([](Value condition, Loc loc) {
             beginElifBody(condition, loc);
           }),
           "condition"_a, "loc"_a)
      .def("begin_while", recorded([](Loc loc) { beginWhile(loc); }), "loc"_a,
           "The condition follows; then `begin_while_body`.")
      .def("begin_while_body", recorded([](Value condition, Loc loc) {
             beginWhileBody(condition, loc);
           }),
           "condition"_a, "loc"_a)
      .def("begin_for", recorded([](Value lo, Value hi, Value step, Loc loc) {
             return Value(beginFor(lo, hi, step, loc));
           }),
           "lo"_a, "hi"_a, "step"_a, "loc"_a, "Returns the index, i64.")
      .def("keep_checkpoints",
           recorded([](int64_t most, Loc loc) { keepCheckpoints(most, loc); }),
           "most"_a, "loc"_a, "Of the loop just begun, in its gradient.")
      .def("begin_range", recorded(range), "extents"_a, "loc"_a,
           "Returns one index for each extent, i64.")
      .def("end", recorded([] { end(); }))
      .def("in_work_item", recorded([] { return inWorkItem(); }),
           "Whether this is the code of a work item, or a term.")
      .def("end_fold", recorded([](Op op, const Values &values, Loc loc) {
             std::vector<Handle> results = handles(values);
             endFold(op, results, loc);
             return valuesOf(results);
           }),
           "op"_a, "values"_a, "loc"_a,
           "Ends a range with the sum of each of `values` over its work items, "
           "or with `Op.min` the least pair of two i64; instead of `end`.")
      .def("begin_term", recorded([] { return beginTerm(); }))
      .def("end_term", recorded([](uint32_t outer) { endTerm(outer); }),
           "outer"_a)
      .def("begin_custom", recorded(customArguments), "inputs"_a, "loc"_a)
      .def("begin_partials", recorded(partialsArguments), "result"_a, "count"_a,
           "loc"_a, "`count`: that of the inputs.")
      .def("end_custom", recorded([](const Values &partials, Loc loc) {
             return Value(endCustom(handles(partials), loc));
           }),
           "partials"_a, "loc"_a)
      .def("jump_break", recorded([](Loc loc) { jumpBreak(loc); }), "loc"_a)
      .def("jump_continue", recorded([](Loc loc) { jumpContinue(loc); }),
           "loc"_a)
      .def("jump_return", recorded([](Loc loc) { jumpReturn(loc); }), "loc"_a);
}

/// One that `decompose` makes, as a method.
static auto decomposition(Parts (*decompose)(DType, const Parts &, Loc)) {
  return [decompose](const Trace &trace, DType type, const Values &matrix,
                     Loc loc) {
    trace.session();
    trace.isEmpty = false;
    return valuesOf(decompose(type, handles(matrix), loc));
  };
}

static void bindDecompositions(TraceClass &trace) {
  trace
      .def("svd", decomposition(traceSvd), "dtype"_a, "matrix"_a, "loc"_a,
           "u, the values, and v, row after row, of 2 or 3 rows.")
      .def("polar_decompose", decomposition(tracePolar), "dtype"_a, "matrix"_a,
           "loc"_a, "The rotation, and the symmetric matrix.")
      .def("sym_eig", decomposition(traceSymEig), "dtype"_a, "matrix"_a,
           "loc"_a, "The values, and the vectors as columns.");
}

static void bindMessages(TraceClass &trace) {
  trace
      .def("print",
           recorded([](std::string text, const Values &values, Loc loc) {
             print(text, handles(values), loc);
           }),
           "text"_a, "values"_a, "loc"_a, "`text` has a `{}` for each value.")
      .def("check",
           recorded(
               [](Value condition, std::string text, const Values &values,
                  Loc loc) { check(condition, text, handles(values), loc); }),
           "condition"_a, "text"_a, "values"_a, "loc"_a)
      .def("enter_function",
           recorded([](uintptr_t id, std::string name, Loc loc) {
             enterFunction(reinterpret_cast<const void *>(id), name.c_str(),
                           loc);
           }),
           "id"_a, "name"_a, "loc"_a,
           "BadKernel if the function `id` is being called already.")
      .def("leave_function", recorded([] { leaveFunction(); }))
      .def("finish", &finish, "options"_a = KernelOptions(),
           "The kernel. BadKernel for the first mistake in it.")
      .def("abandon", &Trace::abandon)
      .def_ro("carried", &Trace::carried,
              "Of the finished kernel: elements that work items of a range "
              "certainly leave to others.")
      .def_prop_ro(
          "is_empty", [](const Trace &trace) { return trace.isEmpty; },
          "Whether nothing has been recorded but arguments.");
}

void bindTrace(nb::module_ &module) {
  nb::class_<Value>(module, "Value", "A value of a kernel that is traced.");
  nb::class_<Variable>(module, "Variable");
  nb::class_<LocalArray>(module, "LocalArray");
  nb::class_<ArrayArgument>(module, "ArrayArgument");
  nb::class_<CarriedElement>(module, "CarriedElement",
                             "An element that one work item changes and "
                             "another one reads.")
      .def_ro("argument", &CarriedElement::argument)
      .def_ro("range", &CarriedElement::range)
      .def_ro("change", &CarriedElement::change)
      .def_ro("read", &CarriedElement::read)
      .def_ro("is_shared", &CarriedElement::isShared)
      .def_ro("is_added", &CarriedElement::isAdded)
      .def_ro("is_sure", &CarriedElement::isSure);
  TraceClass trace(module, "Trace",
                   "A kernel in the making: this thread traces into it until "
                   "`finish` or `abandon`.");
  trace.def(nb::init<std::string, Loc>(), "name"_a, "loc"_a);
  bindValues(trace);
  bindGroups(trace);
  bindAccesses(trace);
  bindBlocks(trace);
  bindDecompositions(trace);
  bindMessages(trace);
}

} // namespace costate::python
