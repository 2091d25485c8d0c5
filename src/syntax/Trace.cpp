/// The border of the embedded language: include/costate/detail/record.h and
/// include/costate/trace.h.

#include "syntax/Trace.h"

#include "costate/detail/group.h"
#include "costate/detail/recorded_at.h"
#include "costate/trace.h"
#include "syntax/Tracer.h"

namespace costate::detail {

using syntax::Kind;
using syntax::Tracer;

/// The kernel that this thread traces: C++ operators have no room for it.
static thread_local Tracer *currentTracer = nullptr;

static Tracer &tracer() {
  if (!currentTracer)
    throw Error(ErrorCode::BadKernel,
                "a value of the kernel language is used outside of a kernel\n"
                "note: use it in the function that is passed to `kernel`");
  return *currentTracer;
}

//===-- Sessions ----------------------------------------------------------===//

struct Session::State {
  Tracer tracer;
  Tracer *outer;
};

Session::Session(const char *name, Loc loc)
    : state(new State{Tracer(name, loc), currentTracer}) {
  currentTracer = &state->tracer;
}

Session::~Session() { currentTracer = state->outer; }

void Session::parameter(const std::string &name) {
  state->tracer.parameter(name);
}

Handle Session::array(DType type, int rank, const ElementForm &form,
                      std::vector<int64_t> extents) {
  return state->tracer.array(type, rank, form, std::move(extents));
}

Handle Session::scalar(DType type) { return state->tracer.scalar(type); }

std::shared_ptr<TracedKernel> Session::finish() {
  return std::make_shared<TracedKernel>(state->tracer.finish());
}

syntax::Kernel TracedKernel::outlined(Calls calls) const {
  syntax::Kernel result = kernel;
  syntax::outlineFunctions(result, named, calls);
  return result;
}

//===-- Statements --------------------------------------------------------===//

Handle constant(DType type, uint64_t bits, Loc loc) {
  return tracer().constant(type, bits, loc);
}

Handle unfitting(DType type, Loc loc) {
  tracer().fail(loc, std::string("a number does not fit in ") + nameOf(type),
                "use a wider type, or write the value that is meant");
  return tracer().constant(type, 0, loc);
}

void noComponent(int64_t index, int64_t extent, Loc loc) {
  tracer().fail(loc,
                "there is no component " + std::to_string(index) + " of " +
                    std::to_string(extent),
                "components count from 0");
}

void limitOrder(int order, const char *what, Loc loc) {
  tracer().limitOrder(order, what, loc);
}

Handle pure(Op op, DType type, std::initializer_list<Handle> operands,
            Loc loc) {
  return tracer().pure(op, type, operands, loc);
}

Handle extent(Handle array, int rank, int dim, Loc loc) {
  return tracer().extent(array, rank, dim, loc);
}

Handle load(const Place &place, Loc loc) { return tracer().load(place, loc); }

void store(const Place &place, Handle value, Loc loc) {
  tracer().store(place, value, loc);
}

void update(Op op, const Place &place, Handle value, Loc loc) {
  tracer().update(op, place, value, loc);
}

Handle fetch(Op op, const Place &place, Handle value, Loc loc) {
  return tracer().fetch(op, place, value, loc);
}

Handle exchange(const Place &place, Handle value, Loc loc) {
  return tracer().exchange(place, value, loc);
}

Handle compareExchange(const Place &place, Handle expected, Handle desired,
                       Loc loc) {
  return tracer().compareExchange(place, expected, desired, loc);
}

void print(std::string_view text, std::span<const Handle> values, Loc loc) {
  tracer().print(text, values, loc);
}

void check(Handle condition, std::string_view text,
           std::span<const Handle> values, Loc loc) {
  tracer().check(condition, text, values, loc);
}

Handle declare(DType type, Handle start, Loc loc) {
  return tracer().declare(type, start, loc);
}

Handle read(DType type, Handle variable, Loc loc) {
  return tracer().read(type, variable, loc);
}

void assign(Handle variable, Handle value, Loc loc) {
  tracer().assign(variable, value, loc);
}

Handle declareLocal(DType type, int64_t size, Loc loc) {
  return tracer().declareLocal(type, size, loc);
}

Handle loadLocal(DType type, Handle local, Handle index, Loc loc) {
  return tracer().loadLocal(type, local, index, loc);
}

void storeLocal(Handle local, Handle index, Handle value, Loc loc) {
  tracer().storeLocal(local, index, value, loc);
}

Handle declareShared(DType type, int64_t size, Loc loc) {
  return tracer().declareShared(type, size, loc);
}

Handle updateShared(Op op, Handle shared, Handle index, Handle value, Loc loc) {
  return tracer().updateShared(op, shared, index, value, loc);
}

Handle group(GroupOp op, DType type, std::initializer_list<Handle> operands,
             Loc loc) {
  return tracer().group(op, type, operands, loc);
}

//===-- Blocks ------------------------------------------------------------===//

void beginIf(Handle condition, Loc loc) { tracer().beginIf(condition, loc); }
void beginElse(Loc loc) { tracer().beginElse(loc); }
void beginElif(Loc loc) { tracer().beginElif(loc); }
void beginElifBody(Handle condition, Loc loc) {
  tracer().beginElifBody(condition, loc);
}
void beginWhile(Loc loc) { tracer().beginWhile(loc); }
void beginWhileBody(Handle condition, Loc loc) {
  tracer().beginWhileBody(condition, loc);
}
Handle beginFor(Handle lo, Handle hi, Handle step, Loc loc) {
  return tracer().beginFor(lo, hi, step, loc);
}
void keepCheckpoints(int64_t most, Loc loc) {
  tracer().keepCheckpoints(most, loc);
}
void beginRange(std::span<const Handle> extents, Handle *indices, Loc loc) {
  tracer().beginRange(extents, indices, loc);
}

void setBlockDim(int64_t workItems, Loc loc) {
  tracer().setBlockDim(workItems, loc);
}

void beginCustom(std::span<const Handle> inputs, Handle *arguments, Loc loc) {
  tracer().beginCustom(inputs, arguments, loc);
}
void beginPartials(Handle result, Handle *arguments, Loc loc) {
  tracer().beginPartials(result, arguments, loc);
}
Handle endCustom(std::span<const Handle> partials, Loc loc) {
  return tracer().endCustom(partials, loc);
}

void end() noexcept {
  if (currentTracer)
    currentTracer->end();
}

bool inWorkItem() { return tracer().inWorkItem(); }
void endFold(Op op, std::span<Handle> values, Loc loc) {
  tracer().endFold(op, values, loc);
}
uint32_t beginTerm() { return tracer().beginTerm(); }
void endTerm(uint32_t outer) noexcept {
  if (currentTracer)
    currentTracer->endTerm(outer);
}

void enterFunction(const void *id, const char *name, Loc loc) {
  tracer().enterFunction(id, name, loc);
}
void leaveFunction() noexcept {
  if (currentTracer)
    currentTracer->leaveFunction();
}

void noTile(int64_t size, Loc loc) {
  tracer().fail(loc, "a tile of " + std::to_string(size) + " work items",
                "tiles have 1 or more in each dimension");
}

void jumpBreak(Loc loc) { tracer().jump(Kind::Break, loc); }
void jumpContinue(Loc loc) { tracer().jump(Kind::Continue, loc); }
void jumpReturn(Loc loc) { tracer().jump(Kind::Return, loc); }

RecordedAt::RecordedAt(Loc loc) : outer(tracer().standAt(loc)) {}
RecordedAt::~RecordedAt() {
  if (currentTracer)
    currentTracer->standAt(outer);
}

} // namespace costate::detail
