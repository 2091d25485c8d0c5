#pragma once
/// Builds a statement tree from calls in program order. Every front end uses
/// it. Mistakes in the kernel are recorded: after the first one the tracer goes
/// on, and `finish` returns that failure beside a tree that is not to be used.

#include "syntax/Outline.h"
#include "syntax/Trace.h"

#include "costate/detail/group.h"

namespace costate::syntax {

class Tracer {
public:
  using GroupOp = detail::GroupOp;
  using Handle = detail::Handle;
  using Place = detail::Place;

  Tracer(std::string name, Loc loc);

  /// What follows is the next argument of the user, or a part of it: a number
  /// of a `name`, or an array.
  void parameter(const std::string &name);
  /// Appends an argument; all of them come before the first statement.
  /// `extents`: see syntax::Argument; those of components are known anyway.
  Handle array(DType type, int rank, const ElementForm &form = {},
               std::vector<int64_t> extents = {});
  Handle scalar(DType type);
  detail::TracedKernel finish();

  Handle constant(DType type, uint64_t bits, Loc loc);
  Handle pure(Op op, DType type, std::initializer_list<Handle> operands,
              Loc loc);
  Handle extent(Handle array, int rank, int dim, Loc loc);
  Handle load(const Place &place, Loc loc);
  void store(const Place &place, Handle value, Loc loc);
  /// `op`: Add, Min, Max, And, Or or Xor.
  void update(Op op, const Place &place, Handle value, Loc loc);
  /// The same, and the element before.
  Handle fetch(Op op, const Place &place, Handle value, Loc loc);
  Handle exchange(const Place &place, Handle value, Loc loc);
  Handle compareExchange(const Place &place, Handle expected, Handle desired,
                         Loc loc);

  /// `text` has a `{}` for each value.
  void print(std::string_view text, std::span<const Handle> values, Loc loc);
  void check(Handle condition, std::string_view text,
             std::span<const Handle> values, Loc loc);

  Handle declare(DType type, Handle start, Loc loc);
  Handle read(DType type, Handle variable, Loc loc);
  void assign(Handle variable, Handle value, Loc loc);

  /// A private array of zeros.
  Handle declareLocal(DType type, int64_t size, Loc loc);
  Handle loadLocal(DType type, Handle local, Handle index, Loc loc);
  void storeLocal(Handle local, Handle index, Handle value, Loc loc);

  /// An array that the work items of a block share.
  Handle declareShared(DType type, int64_t size, Loc loc);
  Handle updateShared(Op op, Handle shared, Handle index, Handle value,
                      Loc loc);
  Handle group(GroupOp op, DType type, std::initializer_list<Handle> operands,
               Loc loc);
  /// Of the range just begun.
  void setBlockDim(int64_t workItems, Loc loc);

  // Each `begin` opens one block, which `end` closes.
  void beginIf(Handle condition, Loc loc);
  /// Continues the IF that ended last.
  void beginElse(Loc loc);
  /// The else branch of the IF that ended last, for its condition; it stays
  /// open after `end` until something else than an ELSE or ELIF follows.
  void beginElif(Loc loc);
  void beginElifBody(Handle condition, Loc loc);
  void beginWhile(Loc loc);
  void beginWhileBody(Handle condition, Loc loc);
  Handle beginFor(Handle lo, Handle hi, Handle step, Loc loc);
  /// Of the loop just begun.
  void keepCheckpoints(int64_t most, Loc loc);
  void beginRange(std::span<const Handle> extents, Handle *indices, Loc loc);
  void end();

  /// Whether reductions are loops here: in a range, or in a term of another.
  bool inWorkItem() { return top().range != none || top().term != none; }
  /// Ends a range with what becomes of `values` over all work items.
  void endFold(Op op, std::span<Handle> values, Loc loc);
  /// A term only computes. Returns the one around it, for `endTerm`.
  uint32_t beginTerm();
  void endTerm(uint32_t outer);

  void enterFunction(const void *id, const char *name, Loc loc);
  void leaveFunction();

  /// A function with partial derivatives; its `arguments` stand for `inputs`.
  void beginCustom(std::span<const Handle> inputs, Handle *arguments, Loc loc);
  /// The same for its derivatives, with `result` as one argument more.
  void beginPartials(Handle result, Handle *arguments, Loc loc);
  Handle endCustom(std::span<const Handle> partials, Loc loc);

  /// Break, Continue or Return.
  void jump(Kind kind, Loc loc);

  /// The kernel has no derivatives above this order because of `what`.
  void limitOrder(int order, const char *what, Loc loc);

  /// Where statements stand from here on, instead of where they are said to;
  /// none: there. Returns what was so before.
  std::optional<Loc> standAt(std::optional<Loc> loc);

  /// Records a mistake in the kernel, if it is the first.
  void fail(Loc loc, const std::string &text, const std::string &note);

private:
  /// An open block, the statement that it belongs to, and what surrounds it.
  struct Frame {
    Statement owner;
    Block block;
    uint32_t number = 0;       ///< of the block
    bool elif = false;         ///< may close by itself
    bool inLoop = false;       ///< BREAK has a target
    uint32_t range = none;     ///< depth of the range around it
    uint32_t condition = none; ///< depth of the WHILE condition around it
    uint32_t term = none;      ///< depth of the term of a reduction around it
    uint32_t custom = none;    ///< depth of the block of a Custom around it
    bool partials = false;     ///< it holds the derivatives of a Custom
  };
  /// Of a variable or private array.
  struct VariableScope {
    uint32_t block; ///< number of the block that declares it
    uint32_t depth; ///< of that block
  };

  Frame &top() { return frames.back(); }
  /// The innermost block, which is number `block` of a `kind`.
  void requireOpen(Kind kind, size_t block, const char *what);
  void push(Statement owner);
  void pop();
  void closeBranches();
  Statement &append(Kind kind, Loc loc);
  Statement &update(Kind kind, Op op, const Place &place,
                    std::initializer_list<Handle> values, Loc loc);
  Statement make(Kind kind, Loc loc);
  Loc placed(Loc loc) const { return place.value_or(loc); }
  Handle define(Statement &statement, DType type);
  Handle newValue(DType type);
  Statement &access(Kind kind, const Place &place, Loc loc);
  void addIndices(Statement &statement, const Place &place, Loc loc);
  std::optional<Statement> takeIf();
  void addMessage(Statement statement, std::string_view text,
                  std::span<const Handle> values, size_t most);
  void checkEffect(const char *what, Loc loc);
  void checkStack(Loc loc) const;
  void checkStraight(Loc loc);
  void checkArray(Loc loc);
  void checkInside(uint32_t block, const char *what, Loc loc);
  void openCustom(Statement statement, Handle *arguments);
  bool owns(Handle handle, const char *what, Loc loc);
  ValueId use(Handle value, Loc loc);
  VarId useVariable(Handle variable, Loc loc);
  uint32_t useArray(Handle array, Loc loc);
  uint32_t useLocal(Handle local, Loc loc);
  Handle declareArray(Local local, bool isShared, int64_t mostBytes);

  detail::TracedKernel traced;
  Kernel &kernel = traced.kernel;
  std::vector<NamedFunction> &named = traced.named;
  uint32_t trace;            ///< number of this kernel, in every handle
  uint32_t parameters = 0;   ///< arguments of the user so far, if they are told
  std::string parameterName; ///< of the last one
  std::optional<Loc> place;  ///< of all statements
  std::vector<Frame> frames;
  std::vector<bool> blockOpen;
  std::vector<uint32_t> blockOf; ///< block that defines each value
  std::vector<bool> isZero;      ///< values that are the constant 0
  std::vector<VariableScope> scopes;
  std::vector<VariableScope> localScopes;
  std::vector<const void *> functions;     ///< that are being called
  std::vector<uint32_t> blocksOfFunctions; ///< where these were entered
  const void *stack;                       ///< where it was when tracing began
};

} // namespace costate::syntax
