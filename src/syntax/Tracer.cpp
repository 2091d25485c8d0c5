#include "syntax/Tracer.h"

#include "base/Message.h"
#include "syntax/Check.h"
#include "syntax/Diagnostic.h"

#include "costate/error.h"

#include <atomic>
#include <cstdlib>
#include <utility>

namespace costate::syntax {

static uint32_t nextTrace() {
  static std::atomic<uint32_t> last{0};
  return ++last;
}

Tracer::Tracer(std::string name, Loc loc)
    : trace(nextTrace()), stack(__builtin_frame_address(0)) {
  kernel.name = std::move(name);
  kernel.loc = loc;
  push(make(Kind::Return, loc)); // the body has no owner; this one is dropped
}

void Tracer::parameter(const std::string &name) {
  ++parameters;
  parameterName = name;
}

Tracer::Handle Tracer::array(DType type, int rank, const ElementForm &form,
                             std::vector<int64_t> extents) {
  if (form.count) {
    extents.resize(rank, -1);
    extents[form.layout == SoA ? 0 : rank - 1] = form.count;
  }
  kernel.arguments.push_back(
      {type, rank, form, parameters, std::move(extents)});
  return {static_cast<uint32_t>(kernel.arguments.size() - 1), trace};
}

Tracer::Handle Tracer::scalar(DType type) {
  uint32_t argument = array(type, -1, {parameterName}).id;
  Statement &statement = append(Kind::Scalar, kernel.loc);
  statement.argument = argument;
  return define(statement, type);
}

detail::TracedKernel Tracer::finish() {
  closeBranches();
  if (frames.size() != 1)
    fail(top().owner.loc, "a block is left open", "each `begin` has its `end`");
  kernel.body = std::move(frames.front().block);
  bool empty = true;
  for (const Statement &statement : kernel.body)
    empty &= statement.kind == Kind::Scalar || is(statement.kind, Role::Mark);
  if (empty)
    fail(kernel.loc, "kernel `" + kernel.name + "` is empty",
         "a kernel has at least one statement, such as `parallel`");
  if (!traced.failure)
    traced.failure = syntax::check(kernel);
  return std::move(traced);
}

void Tracer::limitOrder(int order, const char *what, Loc loc) {
  if (!kernel.limit.order || order < kernel.limit.order)
    kernel.limit = {order, what, placed(loc)};
}

std::optional<Loc> Tracer::standAt(std::optional<Loc> loc) {
  return std::exchange(place, loc);
}

//===-- Values ------------------------------------------------------------===//

Tracer::Handle Tracer::constant(DType type, uint64_t bits, Loc loc) {
  Statement &statement = append(Kind::Const, loc);
  statement.bits = bits;
  Handle value = define(statement, type);
  isZero[value.id] = bits == 0;
  return value;
}

Tracer::Handle Tracer::pure(Op op, DType type,
                            std::initializer_list<Handle> operands, Loc loc) {
  Statement &statement = append(Kind::Pure, loc);
  statement.op = op;
  for (Handle operand : operands)
    statement.operands.push_back(use(operand, loc));
  return define(statement, type);
}

Tracer::Handle Tracer::extent(Handle array, int rank, int dim, Loc loc) {
  if (dim < 0 || dim >= rank)
    fail(loc,
         "an array of rank " + std::to_string(rank) + " has no dimension " +
             std::to_string(dim),
         "dimensions count from 0");
  checkArray(loc);
  Statement &statement = append(Kind::Extent, loc);
  statement.argument = useArray(array, loc);
  statement.dim = dim;
  return define(statement, DType::I64);
}

Tracer::Handle Tracer::load(const Place &place, Loc loc) {
  checkArray(loc);
  Statement &statement = access(Kind::Load, place, loc);
  addIndices(statement, place, loc);
  return define(statement, place.type);
}

void Tracer::store(const Place &place, Handle value, Loc loc) {
  checkEffect("stores into an array", loc);
  Statement &statement = access(Kind::Store, place, loc);
  statement.operands.push_back(use(value, loc));
  addIndices(statement, place, loc);
}

Statement &Tracer::update(Kind kind, Op op, const Place &place,
                          std::initializer_list<Handle> values, Loc loc) {
  bool adds = kind == Kind::Update && op == Op::Add;
  checkEffect(adds ? "adds to an array" : "updates an array", loc);
  Statement &statement = access(kind, place, loc);
  statement.op = op;
  for (Handle value : values)
    statement.operands.push_back(use(value, loc));
  addIndices(statement, place, loc);
  return statement;
}

void Tracer::update(Op op, const Place &place, Handle value, Loc loc) {
  update(Kind::Update, op, place, {value}, loc);
}

Tracer::Handle Tracer::fetch(Op op, const Place &place, Handle value, Loc loc) {
  return define(update(Kind::Update, op, place, {value}, loc), place.type);
}

Tracer::Handle Tracer::exchange(const Place &place, Handle value, Loc loc) {
  return define(update(Kind::Exchange, Op::Neg, place, {value}, loc),
                place.type);
}

Tracer::Handle Tracer::compareExchange(const Place &place, Handle expected,
                                       Handle desired, Loc loc) {
  return define(
      update(Kind::CompareExchange, Op::Neg, place, {desired, expected}, loc),
      place.type);
}

Statement &Tracer::access(Kind kind, const Place &place, Loc loc) {
  Statement &statement = append(kind, loc);
  statement.argument = useArray(place.array, loc);
  return statement;
}

void Tracer::addIndices(Statement &statement, const Place &place, Loc loc) {
  for (int dim = 0; dim < place.rank; ++dim)
    statement.operands.push_back(use(place.indices[dim], loc));
}

//===-- Messages ----------------------------------------------------------===//

void Tracer::print(std::string_view text, std::span<const Handle> values,
                   Loc loc) {
  checkEffect("prints", loc);
  closeBranches();
  addMessage(make(Kind::Print, loc), text, values, mostPrinted);
}

void Tracer::check(Handle condition, std::string_view text,
                   std::span<const Handle> values, Loc loc) {
  checkEffect("asserts", loc);
  closeBranches();
  Statement statement = make(Kind::Assert, loc);
  statement.operands.push_back(use(condition, loc));
  addMessage(std::move(statement), text, values, mostAsserted);
}

static char letterOf(DType type) {
  if (type == DType::Bool)
    return 'b';
  return isFloat(type) ? 'f' : isUnsigned(type) ? 'u' : 'i';
}

void Tracer::addMessage(Statement statement, std::string_view text,
                        std::span<const Handle> values, size_t most) {
  size_t next = 0;
  auto typed = [&](char kind, std::string_view form) -> std::string {
    if (kind != 0 || next >= values.size())
      return next = values.size() + 1, "";
    ValueId value = use(values[next++], statement.loc);
    statement.operands.push_back(value);
    if (value == none)
      return "";
    return std::string("{") + letterOf(kernel.values[value]) +
           std::string(form) + "}";
  };
  std::optional<std::string> result = filled(text, typed, "{{", "}}");
  if (!result || next != values.size())
    fail(statement.loc,
         "the text \"" + std::string(text) + "\" does not fit to " +
             std::to_string(values.size()) +
             (values.size() == 1 ? " value" : " values"),
         "it has one `{}` for each value, or a form such as `{:8.3f}`; write "
         "`{{` and `}}` for braces");
  if (values.size() > most)
    fail(statement.loc,
         "a message of more than " + std::to_string(most) + " values",
         "split it");
  statement.bits = kernel.texts.size();
  kernel.texts.push_back(result.value_or(""));
  top().block.push_back(std::move(statement));
}

//===-- Variables ---------------------------------------------------------===//

Tracer::Handle Tracer::declare(DType type, Handle start, Loc loc) {
  Statement &statement = append(Kind::DeclareVar, loc);
  statement.operands.push_back(use(start, loc));
  statement.variable = static_cast<VarId>(kernel.variables.size());
  kernel.variables.push_back({type, placed(loc)});
  scopes.push_back({top().number, static_cast<uint32_t>(frames.size() - 1)});
  return {statement.variable, trace};
}

Tracer::Handle Tracer::read(DType type, Handle variable, Loc loc) {
  Statement &statement = append(Kind::ReadVar, loc);
  statement.variable = useVariable(variable, loc);
  return define(statement, type);
}

void Tracer::assign(Handle variable, Handle value, Loc loc) {
  Statement &statement = append(Kind::AssignVar, loc);
  statement.variable = useVariable(variable, loc);
  statement.operands.push_back(use(value, loc));
  if (statement.variable == none)
    return;
  uint32_t depth = scopes[statement.variable].depth;
  if (top().range != none && depth < top().range)
    fail(loc, "a `Var` from outside of `parallel` is assigned inside",
         "work items run at the same time: declare it inside, or add to an "
         "array element with `+=`");
  if ((top().condition != none && depth < top().condition) ||
      (top().term != none && depth < top().term))
    checkEffect("assigns a `Var`", loc);
}

//===-- Private arrays ----------------------------------------------------===//

Tracer::Handle Tracer::declareLocal(DType type, int64_t size, Loc loc) {
  checkEffect("declares a `Local`", loc);
  constexpr int64_t mostBytes = 65536;
  return declareArray({type, size, loc}, false, mostBytes);
}

Tracer::Handle Tracer::declareArray(Local local, bool isShared,
                                    int64_t mostBytes) {
  int64_t most = mostBytes / static_cast<int64_t>(sizeOf(local.type));
  if (local.size < 1 || local.size > most)
    fail(local.loc,
         (isShared ? "a shared array of " : "a `Local` of ") +
             std::to_string(local.size) + " elements",
         "it has 1 to " + std::to_string(most) + ": use an array");
  Statement &statement = append(Kind::DeclareLocal, local.loc);
  statement.bits = isShared;
  statement.argument = static_cast<uint32_t>(kernel.locals.size());
  local.loc = placed(local.loc);
  kernel.locals.push_back(local);
  localScopes.push_back(
      {top().number, static_cast<uint32_t>(frames.size() - 1)});
  return {statement.argument, trace};
}

Tracer::Handle Tracer::loadLocal(DType type, Handle local, Handle index,
                                 Loc loc) {
  Statement &statement = append(Kind::LoadLocal, loc);
  statement.argument = useLocal(local, loc);
  statement.operands.push_back(use(index, loc));
  return define(statement, type);
}

void Tracer::storeLocal(Handle local, Handle index, Handle value, Loc loc) {
  checkEffect("stores into a `Local`", loc);
  Statement &statement = append(Kind::StoreLocal, loc);
  statement.argument = useLocal(local, loc);
  statement.operands = {use(value, loc), use(index, loc)};
}

//===-- Frames ------------------------------------------------------------===//

void Tracer::push(Statement owner) {
  Frame frame;
  if (!frames.empty()) {
    frame.inLoop = top().inLoop;
    frame.range = top().range;
    frame.condition = top().condition;
    frame.term = top().term;
    frame.custom = top().custom;
    frame.partials = top().partials;
  }
  frame.owner = std::move(owner);
  frame.number = static_cast<uint32_t>(blockOpen.size());
  blockOpen.push_back(true);
  frames.push_back(std::move(frame));
}

void Tracer::requireOpen(Kind kind, size_t block, const char *what) {
  const Statement &owner = top().owner;
  if (frames.size() == 1 || owner.kind != kind || owner.blocks.size() != block)
    throw Error(ErrorCode::BadKernel,
                std::string(what) + " does not belong to the innermost block");
}

/// Closes the innermost block.
void Tracer::pop() {
  Frame frame = std::move(frames.back());
  frames.pop_back();
  blockOpen[frame.number] = false;
  frame.owner.blocks.push_back(std::move(frame.block));
  top().block.push_back(std::move(frame.owner));
}

/// Closes the branches that an ELIF left open.
void Tracer::closeBranches() {
  while (top().elif)
    pop();
}

/// Tracing that takes this much calls a function again and again.
static constexpr std::ptrdiff_t mostStack = std::ptrdiff_t(4) << 20;

void Tracer::checkStack(Loc loc) const {
  auto *here = static_cast<const char *>(__builtin_frame_address(0));
  if (std::abs(here - static_cast<const char *>(stack)) < mostStack)
    return;
  Failure failure = badKernel(
      loc, "a function that this kernel uses calls itself without end",
      "a kernel is traced once, with both branches of each `IF`: "
      "write a loop, or let the function count a number of the host "
      "down; `function(\"name\", ...)` tells which one it is");
  throw Error(failure.code, failure.text);
}

Statement Tracer::make(Kind kind, Loc loc) {
  checkStack(loc);
  Statement statement;
  statement.kind = kind;
  statement.loc = placed(loc);
  return statement;
}

Statement &Tracer::append(Kind kind, Loc loc) {
  closeBranches();
  return top().block.emplace_back(make(kind, loc));
}

Tracer::Handle Tracer::newValue(DType type) {
  kernel.values.push_back(type);
  blockOf.push_back(top().number);
  isZero.push_back(false);
  return {static_cast<ValueId>(kernel.values.size() - 1), trace};
}

Tracer::Handle Tracer::define(Statement &statement, DType type) {
  Handle value = newValue(type);
  statement.type = type;
  statement.value = value.id;
  return value;
}

} // namespace costate::syntax
