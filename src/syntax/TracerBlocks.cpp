/// Blocks, functions and jumps.

#include "syntax/Diagnostic.h"
#include "syntax/Tracer.h"

#include "costate/error.h"

#include <algorithm>
#include <utility>

namespace costate::syntax {

void Tracer::beginIf(Handle condition, Loc loc) {
  closeBranches();
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
  closeBranches();
  requireOpen(Kind::If, 1, "`begin_elif_body`");
  top().elif = true;
  Statement statement = make(Kind::If, loc);
  statement.operands.push_back(use(condition, loc));
  push(std::move(statement));
}

void Tracer::beginWhile(Loc loc) {
  closeBranches();
  checkStraight(loc);
  push(make(Kind::While, loc));
  top().inLoop = false;
  top().condition = static_cast<uint32_t>(frames.size() - 1);
}

void Tracer::beginWhileBody(Handle condition, Loc loc) {
  closeBranches();
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
  closeBranches();
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

void Tracer::keepCheckpoints(int64_t most, Loc loc) {
  Statement &owner = top().owner;
  bool isLoop = owner.kind == Kind::For || owner.kind == Kind::While;
  if (!isLoop || !top().block.empty())
    return fail(loc, "`checkpoints` of no loop",
                "they are an option of a `FOR` or `WHILE`");
  if (most < 1)
    return fail(loc,
                "a loop cannot have " + std::to_string(most) + " checkpoints",
                "give a number above 0, or leave `checkpoints` out");
  owner.bits = static_cast<uint64_t>(most);
}

void Tracer::beginRange(std::span<const Handle> extents, Handle *indices,
                        Loc loc) {
  closeBranches();
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
  closeBranches();
  const Statement &owner = top().owner;
  if (frames.size() == 1 || owner.kind == Kind::Custom ||
      (owner.kind == Kind::While && owner.blocks.empty()))
    return fail(owner.loc, "an `end` of no block",
                "each `begin` has its `end`");
  pop();
}

void Tracer::endFold(Op op, std::span<Handle> values, Loc loc) {
  closeBranches();
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
  closeBranches();
  return std::exchange(top().term, static_cast<uint32_t>(frames.size() - 1));
}

void Tracer::endTerm(uint32_t outer) {
  closeBranches();
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
  closeBranches();
  if (top().number == blocksOfFunctions.back())
    top().block.emplace_back().kind = Kind::Leave;
  functions.pop_back();
  blocksOfFunctions.pop_back();
}

void Tracer::beginCustom(std::span<const Handle> inputs, Handle *arguments,
                         Loc loc) {
  closeBranches();
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
  closeBranches();
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
  closeBranches();
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
       "it belongs into a `FOR` or `WHILE`; `RETURN` ends a work item of "
       "`parallel`");
}

} // namespace costate::syntax
