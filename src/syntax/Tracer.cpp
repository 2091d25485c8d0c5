#include "syntax/Tracer.h"

#include "base/Message.h"
#include "syntax/Check.h"
#include "syntax/Diagnostic.h"

#include "costate/error.h"

#include <algorithm>
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

Tracer::Handle Tracer::array(DType type, int rank, const ElementForm &form) {
  kernel.arguments.push_back({type, rank, form, parameters});
  return {static_cast<uint32_t>(kernel.arguments.size() - 1), trace};
}

Tracer::Handle Tracer::scalar(DType type) {
  uint32_t argument = array(type, -1, {parameterName}).id;
  Statement &statement = append(Kind::Scalar, kernel.loc);
  statement.argument = argument;
  return define(statement, type);
}

detail::TracedKernel Tracer::finish() {
  settle();
  if (frames.size() != 1)
    fail(top().owner.loc, "a block is left open", "each `begin` has its `end`");
  kernel.body = std::move(frames.front().block);
  bool empty = true;
  for (const Statement &statement : kernel.body)
    empty &= statement.kind == Kind::Scalar || statement.kind == Kind::Enter ||
             statement.kind == Kind::Leave;
  if (empty)
    fail(kernel.loc, "kernel `" + kernel.name + "` is empty",
         "a kernel has at least one statement, such as `parallel`");
  if (!traced.failure)
    traced.failure = syntax::check(kernel);
  if (!traced.failure)
    outlineFunctions(kernel, named);
  return std::move(traced);
}

void Tracer::limitOrder(int order, const char *what, Loc loc) {
  if (!kernel.limit.order || order < kernel.limit.order)
    kernel.limit = {order, what, loc};
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
  settle();
  addMessage(make(Kind::Print, loc), text, values, mostPrinted);
}

void Tracer::check(Handle condition, std::string_view text,
                   std::span<const Handle> values, Loc loc) {
  checkEffect("asserts", loc);
  settle();
  Statement statement = make(Kind::Assert, loc);
  statement.operands.push_back(use(condition, loc));
  addMessage(std::move(statement), text, values, mostAsserted);
}

static const char *letterOf(DType type) {
  if (type == DType::Bool)
    return "{b}";
  return isFloat(type) ? "{f}" : isUnsigned(type) ? "{u}" : "{i}";
}

void Tracer::addMessage(Statement statement, std::string_view text,
                        std::span<const Handle> values, size_t most) {
  size_t next = 0;
  auto letter = [&](char kind) -> std::string {
    if (kind != 0 || next >= values.size())
      return next = values.size() + 1, "";
    ValueId value = use(values[next++], statement.loc);
    statement.operands.push_back(value);
    return value == none ? "" : letterOf(kernel.values[value]);
  };
  std::optional<std::string> typed = filled(text, letter, "{{", "}}");
  if (!typed || next != values.size())
    fail(statement.loc,
         "the text \"" + std::string(text) + "\" does not fit to " +
             std::to_string(values.size()) +
             (values.size() == 1 ? " value" : " values"),
         "it has one `{}` for each value; write `{{` and `}}` for braces");
  if (values.size() > most)
    fail(statement.loc,
         "a message of more than " + std::to_string(most) + " values",
         "split it");
  statement.bits = kernel.texts.size();
  kernel.texts.push_back(typed.value_or(""));
  top().block.push_back(std::move(statement));
}

//===-- Variables ---------------------------------------------------------===//

Tracer::Handle Tracer::declare(DType type, Handle start, Loc loc) {
  Statement &statement = append(Kind::DeclareVar, loc);
  statement.operands.push_back(use(start, loc));
  statement.variable = static_cast<VarId>(kernel.variables.size());
  kernel.variables.push_back({type, loc});
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
         "iterations run at the same time: declare it inside, or add to an "
         "array element with `+=`");
  if ((top().condition != none && depth < top().condition) ||
      (top().term != none && depth < top().term))
    checkEffect("assigns a `Var`", loc);
}

//===-- Private arrays ----------------------------------------------------===//

Tracer::Handle Tracer::declareLocal(DType type, int64_t size, Loc loc) {
  checkEffect("declares a `Local`", loc);
  constexpr int64_t mostBytes = 65536;
  int64_t most = mostBytes / static_cast<int64_t>(sizeOf(type));
  if (size < 1 || size > most)
    fail(loc, "a `Local` of " + std::to_string(size) + " elements",
         "it has 1 to " + std::to_string(most) + ": use an array");
  Statement &statement = append(Kind::DeclareLocal, loc);
  statement.argument = static_cast<uint32_t>(kernel.locals.size());
  kernel.locals.push_back({type, size, loc});
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

//===-- Blocks ------------------------------------------------------------===//

void Tracer::beginIf(Handle condition, Loc loc) {
  settle();
  checkStraight(loc);
  Statement statement = make(Kind::If, loc);
  statement.operands.push_back(use(condition, loc));
  push(std::move(statement));
}

/// Takes the IF that ended last off its block, if an ELSE may follow it.
std::optional<Statement> Tracer::takeIf() {
  Block &block = top().block;
  if (block.empty() || block.back().kind != Kind::If ||
      block.back().blocks.size() != 1)
    return std::nullopt;
  Statement branch = std::move(block.back());
  block.pop_back();
  return branch;
}

void Tracer::beginElse(Loc loc) {
  std::optional<Statement> branch = takeIf();
  if (branch)
    return push(std::move(*branch));
  fail(loc, "`ELSE` or `ELIF` without an `IF`",
       "it follows the closing brace of its `IF` or `ELIF`");
  Statement lost = make(Kind::If, loc);
  lost.blocks.emplace_back();
  push(std::move(lost));
}

void Tracer::beginElif(Loc loc) { beginElse(loc); }

void Tracer::beginElifBody(Handle condition, Loc loc) {
  settle();
  requireOpen(Kind::If, 1, "`begin_elif_body`");
  top().elif = true;
  Statement statement = make(Kind::If, loc);
  statement.operands.push_back(use(condition, loc));
  push(std::move(statement));
}

void Tracer::beginWhile(Loc loc) {
  settle();
  checkStraight(loc);
  push(make(Kind::While, loc));
  top().inLoop = false;
  top().condition = static_cast<uint32_t>(frames.size() - 1);
}

void Tracer::beginWhileBody(Handle condition, Loc loc) {
  settle();
  requireOpen(Kind::While, 0, "`begin_while_body`");
  Statement statement = std::move(top().owner);
  statement.condition = use(condition, loc);
  statement.blocks.push_back(std::move(top().block));
  blockOpen[top().number] = false;
  frames.pop_back();
  push(std::move(statement));
  top().inLoop = true;
}

Tracer::Handle Tracer::beginFor(Handle lo, Handle hi, Handle step, Loc loc) {
  settle();
  checkStraight(loc);
  Statement statement = make(Kind::For, loc);
  statement.operands = {use(lo, loc), use(hi, loc), use(step, loc)};
  if (statement.operands[2] != none && isZero[statement.operands[2]])
    fail(loc, "the step of this `FOR` is 0",
         "a loop counts up with a positive step, down with a negative one");
  push(std::move(statement));
  top().inLoop = true;
  return define(top().owner, DType::I64);
}

void Tracer::beginRange(std::span<const Handle> extents, Handle *indices,
                        Loc loc) {
  settle();
  checkEffect("has a `parallel`", loc);
  if (top().range != none)
    fail(loc, "`parallel` inside `parallel`",
         "use one `parallel({n, m}, ...)`, or a `FOR` inside");
  Statement statement = make(Kind::Range, loc);
  for (Handle extent : extents)
    statement.operands.push_back(use(extent, loc));
  push(std::move(statement));
  top().inLoop = false;
  top().range = static_cast<uint32_t>(frames.size() - 1);
  for (size_t dim = 0; dim < extents.size(); ++dim) {
    indices[dim] = newValue(DType::I64);
    top().owner.indices.push_back(indices[dim].id);
  }
}

void Tracer::end() {
  settle();
  const Statement &owner = top().owner;
  if (frames.size() == 1 || owner.kind == Kind::Custom ||
      (owner.kind == Kind::While && owner.blocks.empty()))
    return fail(owner.loc, "an `end` of no block",
                "each `begin` has its `end`");
  pop();
}

void Tracer::endFold(Op op, std::span<Handle> values, Loc loc) {
  settle();
  requireOpen(Kind::Range, 0, "`end_fold`");
  std::vector<ValueId> results;
  for (Handle value : values)
    results.push_back(use(value, loc));
  pop();
  Statement &statement = top().block.back();
  statement.op = op;
  statement.results = results;
  statement.value = static_cast<ValueId>(kernel.values.size());
  for (size_t k = 0; k < results.size(); ++k)
    values[k] =
        newValue(results[k] == none ? DType::F64 : kernel.values[results[k]]);
}

/// What it declares itself, it may assign.
uint32_t Tracer::beginTerm() {
  settle();
  return std::exchange(top().term, static_cast<uint32_t>(frames.size() - 1));
}

void Tracer::endTerm(uint32_t outer) {
  settle();
  top().term = outer;
}

void Tracer::enterFunction(const void *id, const char *name, Loc loc) {
  if (std::ranges::find(functions, id) != functions.end()) {
    Failure failure = badKernel(
        loc, "function `" + std::string(name) + "` calls itself",
        "a kernel is traced once, with both branches of each `IF`, so this "
        "does not end: write a loop, or let a C++ function count a number of "
        "the host down");
    throw Error(failure.code, failure.text);
  }
  append(Kind::Enter, loc).bits = named.size();
  named.push_back({id, name, loc});
  functions.push_back(id);
  blocksOfFunctions.push_back(top().number);
}

/// Also runs while an error passes through, where nothing may throw. A function
/// that ends in another block than it began is not told from its caller.
void Tracer::leaveFunction() {
  if (functions.empty())
    return;
  settle();
  if (top().number == blocksOfFunctions.back())
    top().block.emplace_back().kind = Kind::Leave;
  functions.pop_back();
  blocksOfFunctions.pop_back();
}

void Tracer::beginCustom(std::span<const Handle> inputs, Handle *arguments,
                         Loc loc) {
  settle();
  Statement statement = make(Kind::Custom, loc);
  for (Handle input : inputs)
    statement.operands.push_back(use(input, loc));
  openCustom(std::move(statement), arguments);
}

/// Opens the next block of `statement`, with arguments like its operands.
void Tracer::openCustom(Statement statement, Handle *arguments) {
  push(std::move(statement));
  top().inLoop = false;
  top().partials = false;
  top().custom = static_cast<uint32_t>(frames.size() - 1);
  for (ValueId operand : top().owner.operands) {
    *arguments =
        newValue(operand == none ? DType::F64 : kernel.values[operand]);
    top().owner.indices.push_back(arguments++->id);
  }
}

void Tracer::beginPartials(Handle result, Handle *arguments, Loc loc) {
  settle();
  requireOpen(Kind::Custom, 0, "`begin_partials`");
  ValueId value = use(result, loc);
  Statement statement = std::move(top().owner);
  statement.results.push_back(value);
  statement.type = value == none ? DType::F64 : kernel.values[value];
  statement.blocks.push_back(std::move(top().block));
  blockOpen[top().number] = false;
  frames.pop_back();
  size_t arity = statement.operands.size();
  openCustom(std::move(statement), arguments);
  top().partials = true;
  arguments[arity] = newValue(top().owner.type);
  top().owner.indices.push_back(arguments[arity].id);
}

Tracer::Handle Tracer::endCustom(std::span<const Handle> partials, Loc loc) {
  settle();
  requireOpen(Kind::Custom, 1, "`end_custom`");
  for (Handle partial : partials)
    top().owner.results.push_back(use(partial, loc));
  pop();
  Statement &statement = top().block.back();
  return define(statement, statement.type);
}

void Tracer::jump(Kind kind, Loc loc) {
  append(kind, loc);
  if (kind == Kind::Return)
    return checkEffect("has a `RETURN`", loc);
  if (top().inLoop)
    return;
  const char *name = kind == Kind::Break ? "`BREAK`" : "`CONTINUE`";
  fail(loc, std::string(name) + " outside a loop",
       "it belongs into a `FOR` or `WHILE`; `RETURN` ends an iteration of "
       "`parallel`");
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
void Tracer::settle() {
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
  statement.loc = loc;
  return statement;
}

Statement &Tracer::append(Kind kind, Loc loc) {
  settle();
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

//===-- Checks ------------------------------------------------------------===//

void Tracer::fail(Loc loc, const std::string &text, const std::string &note) {
  if (!traced.failure)
    traced.failure = badKernel(loc, text, note);
}

void Tracer::checkEffect(const char *what, Loc loc) {
  if (top().condition != none)
    fail(loc, std::string("the condition of a `WHILE` ") + what,
         "a condition only computes: do this in the body");
  if (top().term != none)
    fail(
        loc, std::string("the term of a reduction ") + what,
        "a term only computes: do this in front of the reduction or behind it");
  if (top().custom != none)
    fail(loc, std::string("a `custom_derivative` ") + what,
         "it only computes: do this with its result");
}

void Tracer::checkStraight(Loc loc) {
  if (top().partials)
    fail(loc,
         "the partial derivatives of a `custom_derivative` have control flow",
         "use `select`, or put it into a `custom_derivative` of its own");
}

void Tracer::checkArray(Loc loc) {
  if (top().custom != none)
    fail(loc, "a `custom_derivative` reads an array",
         "pass the element as an argument, so that it gets a derivative");
}

/// A function with partial derivatives knows its arguments only: the derivative
/// of anything else would be lost.
void Tracer::checkInside(uint32_t block, const char *what, Loc loc) {
  if (top().custom != none && block < frames[top().custom].number)
    fail(loc,
         std::string(what) + " from outside is used in a `custom_derivative`",
         "pass it as an argument, so that it gets a derivative");
}

bool Tracer::owns(Handle handle, const char *what, Loc loc) {
  if (handle.trace == trace)
    return true;
  if (handle.id == none)
    fail(loc, "a value is used that was never set",
         "give the `Expr` a value before its first use");
  else
    fail(loc, std::string(what) + " of another kernel is used",
         "compute it in this kernel, or pass it as an argument");
  return false;
}

ValueId Tracer::use(Handle value, Loc loc) {
  if (!owns(value, "a value", loc))
    return none;
  if (!blockOpen[blockOf[value.id]])
    fail(loc, "a value is used outside of the block that computed it",
         "declare a `Var` in front of the block and assign it inside");
  checkInside(blockOf[value.id], "a value", loc);
  return value.id;
}

VarId Tracer::useVariable(Handle variable, Loc loc) {
  if (!owns(variable, "a `Var`", loc))
    return none;
  if (!blockOpen[scopes[variable.id].block])
    fail(loc, "a `Var` is used outside of the block that declared it",
         "declare it in front of the block");
  checkInside(scopes[variable.id].block, "a `Var`", loc);
  return variable.id;
}

uint32_t Tracer::useLocal(Handle local, Loc loc) {
  if (!owns(local, "a `Local`", loc))
    return none;
  VariableScope scope = localScopes[local.id];
  if (!blockOpen[scope.block])
    fail(loc, "a `Local` is used outside of the block that declared it",
         "declare it in front of the block");
  if (top().range != none && scope.depth < top().range)
    fail(
        loc, "a `Local` from outside of `parallel` is used inside",
        "it is private to the serial code: declare it inside, or use an array");
  checkInside(scope.block, "a `Local`", loc);
  return local.id;
}

uint32_t Tracer::useArray(Handle array, Loc loc) {
  return owns(array, "an array", loc) ? array.id : none;
}

} // namespace costate::syntax
