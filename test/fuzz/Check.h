#pragma once
/// Are the derivatives of a kernel right?

#include "costate/error.h"
#include "fuzz/Generator.h"
#include "fuzz/Session.h"

namespace costate::fuzz {

/// What is checked of a kernel. Each of these must hold of every kernel.
enum class Property : unsigned {
  Verifies,    ///< the IR verifies, and so does that of its derivatives
  Prints,      ///< its text reads as it prints
  Runs,        ///< it runs to its end, inside of its arrays
  Watches,     ///< accesses that race are among those that are watched
  Passes,      ///< a pass does not change what it computes
  Sections,    ///< what it writes is where its sections say
  Refuses,     ///< a refusal has one of its codes, a place and a text
  Forward,     ///< the tangent kernel computes the primal as well
  Records,     ///< the recording kernel computes the primal as well
  Still,       ///< derivatives along zero are zero, whatever the values
  Finite,      ///< where values are small, derivatives are finite
  Gradient,    ///< reverse mode agrees with forward mode
  Steers,      ///< what steers a reverse sweep is not computed from floats
  KeepsMemory, ///< a gradient leaves primal memory as it found it
  Entries,     ///< entries of the gradient agree with forward mode
  Differences, ///< both agree with central differences
  Order,       ///< the order of work items does not matter to a gradient
  Needs,       ///< a gradient needs no element but those it says it needs
  ByHand,      ///< arrays that are not reloaded may be in their initial state
  SmallTape,   ///< a tape that is too small is an error, one that fits is not
  Subset,      ///< the same with derivatives of some arrays only
  Prepared,    ///< the same after the passes for the primal
  Optimised,   ///< the passes for derivatives do not change a derivative
  Second,      ///< forward over reverse agrees with forward over forward
  SecondDifferences, ///< and with differences of gradients
  Cut,    ///< loops that run again from checkpoints do not change a gradient
  Curves, ///< derivatives along curves are those of nested forward modes
  Plans,  ///< whatever it saves does not change a gradient
  count
};

llvm::StringRef nameOf(Property property);

/// A set of properties.
class Properties {
public:
  static Properties all() {
    return Properties((1u << unsigned(Property::count)) - 1);
  }
  static Properties of(std::initializer_list<Property> list);
  /// Those that are cheap, and of the others some, by `seed`.
  static Properties sampled(uint64_t seed);

  bool has(Property property) const { return bits >> unsigned(property) & 1; }
  void add(Property property) { bits |= 1u << unsigned(property); }
  void add(Properties others) { bits |= others.bits; }

private:
  explicit Properties(unsigned bits) : bits(bits) {}
  unsigned bits;
};

struct Verdict {
  enum Kind {
    Right,
    Refused, ///< it has no gradient, and says why; all else is right
    Racy,    ///< its results depend on the order of work items
    Wild,    ///< values are too large to compare
    Long,    ///< it runs for too long
    Wrong
  } kind = Right;
  Property property = Property::Runs; ///< that does not hold, if wrong
  std::string text;
  unsigned judged = 0;   ///< numbers that differences could judge
  bool reloads = false;  ///< the gradient reads what the kernel stored
  bool versions = false; ///< the gradient needs what was overwritten
  bool scratch = false;  ///< the gradient repeats writes
  bool second = false;   ///< second derivatives were compared
  uint64_t pushes = 0;   ///< records that the gradient pushed
};

/// Checks `wanted` of `subject`, with seeds and directions by `seed`. The
/// kernel of `subject` stays as it is.
Verdict check(Session &session, const Case &subject, uint64_t seed,
              Properties wanted);

} // namespace costate::fuzz
