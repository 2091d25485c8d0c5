/// Which values, variables and arrays a statement may use.

#include "syntax/Diagnostic.h"
#include "syntax/Tracer.h"

namespace costate::syntax {

void Tracer::fail(Loc loc, const std::string &text, const std::string &note) {
  if (!traced.failure)
    traced.failure = badKernel(placed(loc), text, note);
}

void Tracer::checkEffect(const char *what, Loc loc) {
  if (top().condition != none)
    fail(loc, std::string("the condition of a `WHILE` ") + what,
         "a condition only computes: do this in the body");
  if (top().term != none)
    fail(loc, std::string("the term of a reduction ") + what,
         "a term only computes: do this before the reduction or after it");
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
