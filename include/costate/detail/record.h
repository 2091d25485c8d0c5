#pragma once
/// The border between the embedded language and the tracer: every function here
/// appends to the kernel that this thread is tracing, and throws
/// Error(BadKernel) if there is none. Mistakes in the kernel are recorded by
/// the tracer, not thrown.

#include "costate/op.h"
#include "costate/types.h"

#include <array>
#include <initializer_list>
#include <span>
#include <string_view>

namespace costate::detail {

using syntax::Op;

/// A value, variable or argument of the kernel number `trace`.
struct Handle {
  uint32_t id = ~0u;
  uint32_t trace = 0;
};

/// An element of an array argument.
struct Place {
  Handle array;
  DType type;
  int rank;
  std::array<Handle, maxRank> indices;
};

Handle constant(DType type, uint64_t bits, Loc loc);
/// A host number does not fit in `type`; returns 0 of that type.
Handle unfitting(DType type, Loc loc);
/// The host asks for a component that a vector or matrix does not have.
void noComponent(int64_t index, int64_t extent, Loc loc);
/// A function whose derivatives of higher order are not known.
void limitOrder(int order, const char *what, Loc loc);
Handle pure(Op op, DType type, std::initializer_list<Handle> operands, Loc loc);
Handle extent(Handle array, int rank, int dim, Loc loc);
Handle load(const Place &place, Loc loc);
void store(const Place &place, Handle value, Loc loc);
void update(Op op, const Place &place, Handle value, Loc loc);
/// The same, and the element before.
Handle fetch(Op op, const Place &place, Handle value, Loc loc);
Handle exchange(const Place &place, Handle value, Loc loc);
Handle compareExchange(const Place &place, Handle expected, Handle desired,
                       Loc loc);
Handle declare(DType type, Handle start, Loc loc);
Handle read(DType type, Handle variable, Loc loc);
void assign(Handle variable, Handle value, Loc loc);

/// A private array of zeros, and its elements.
Handle declareLocal(DType type, int64_t size, Loc loc);
Handle loadLocal(DType type, Handle local, Handle index, Loc loc);
void storeLocal(Handle local, Handle index, Handle value, Loc loc);

// Each `begin` opens one block, which `end` closes.
void beginIf(Handle condition, Loc loc);
void beginElse(Loc loc);
void beginElif(Loc loc); ///< the condition; then `beginElifBody`
void beginElifBody(Handle condition, Loc loc);
void beginWhile(Loc loc); ///< the condition; then `beginWhileBody`
void beginWhileBody(Handle condition, Loc loc);
Handle beginFor(Handle lo, Handle hi, Handle step, Loc loc); ///< the index
/// Its gradient keeps no more than so many checkpoints of the loop just begun.
void keepCheckpoints(int64_t most, Loc loc);
void beginRange(std::span<const Handle> extents, Handle *indices, Loc loc);
void end() noexcept;

/// Whether this is the code of a work item, or a term.
bool inWorkItem();
/// Ends a range with the sum of each of `values` over its work items, or with
/// `op` Min the least pair of them; they take the place of the values. Instead
/// of `end`.
void endFold(Op op, std::span<Handle> values, Loc loc);
/// What follows only computes, until `endTerm` gets the result.
uint32_t beginTerm();
void endTerm(uint32_t outer) noexcept;

/// The function `id` is being called, until `leaveFunction`.
void enterFunction(const void *id, const char *name, Loc loc);
void leaveFunction() noexcept;
/// A tile of less than 1.
void noTile(int64_t size, Loc loc);

// A function with partial derivatives: two blocks, the second one with the
// result as one argument more.
void beginCustom(std::span<const Handle> inputs, Handle *arguments, Loc loc);
void beginPartials(Handle result, Handle *arguments, Loc loc);
Handle endCustom(std::span<const Handle> partials, Loc loc);

/// `text` has a `{}` for each value.
void print(std::string_view text, std::span<const Handle> values, Loc loc);
void check(Handle condition, std::string_view text,
           std::span<const Handle> values, Loc loc);

void jumpBreak(Loc loc);
void jumpContinue(Loc loc);
void jumpReturn(Loc loc);

} // namespace costate::detail
