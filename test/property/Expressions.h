#pragma once
/// Random expressions over what is visible at a place of a program.

#include "property/Arrays.h"
#include "property/Program.h"
#include "property/Tensors.h"
#include "property/Vocabulary.h"

#include <map>
#include <random>
#include <set>

namespace costate::property {

struct Name {
  std::string text, type; ///< of a private array with "local " in front
  bool writable;
  int bound; ///< of an index: 0 <= value < bound; 0: unknown
};

/// How the current range, or serial code, may use an array. Of a shuffled one
/// each work item fetches from an element of its own, which no proof knows.
enum class Role { Own, Gather, Scatter, Shuffled, Locked };

class Expressions {
public:
  explicit Expressions(unsigned seed) : engine(seed) {
    // At the largest width, gradients are measured before they run.
    width = chance(2) ? 13000 : chance(4) ? 1100 : chance(10) ? 70 : 4;
    wish = wishes()[seed % wishes().size()];
    divergent = seed * 2654435761u >> 29 == 3;
  }

protected:
  int below(int n) { return static_cast<int>(engine() % unsigned(n)); }
  int between(int lo, int hi) { return lo + below(hi - lo + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T> const T &pick(const std::vector<T> &from) {
    return from[size_t(below(int(from.size())))];
  }

  Node literal(const std::string &type);
  Node real(int depth, const std::string &type = "f64");
  Node integer(int depth, const std::string &type);
  Node condition(int depth);
  /// Whether to let work items beside each other differ.
  bool diverges() { return divergent && inRange && chance(50); }
  /// An i64 that differs so; 0 <= it < `extent`.
  Node remainder(int extent) { return list("rem", {own[0], atom(extent)}); }
  Node conditionOfLanes();
  Node expression(const std::string &type, int depth);
  /// An i64 expression in [0, extent).
  Node index(int extent);
  /// The element of `array` that the role allows.
  std::vector<Node> element(const std::string &array);
  bool mayLoad(const std::string &array);
  std::vector<const Name *> named(const std::string &type, bool writable);
  /// Private arrays of `type` that are visible.
  std::vector<const Name *> locals(const std::string &type);
  /// An element of one; `locals(type)` has some.
  std::vector<Node> elementOfLocal(const std::string &type);
  Node vector(int depth);
  Node matrix(int depth);
  /// A component, a product, a norm.
  Node fromTensor(int depth);
  /// One that declares or assigns; `fresh` is a name for what it declares.
  Node tensorStatement(const std::string &fresh);
  /// Some type, more often the one of the wish.
  std::string someType();
  /// A value of any type as a small f64.
  Node asReal(const std::string &type, Node value);

  /// What this program uses more often than others, so that a run of many
  /// programs uses everything: the words of a line of `everything`.
  struct Wish {
    std::string head, type, from;
  };
  Wish wish;
  bool wishes(const char *head) { return wish.head == head && chance(40); }

  std::mt19937 engine;
  std::vector<Name> names;
  std::map<std::string, Role> roles;
  std::vector<Node> own; ///< indices of this work item
  bool divergent; ///< whether lanes of a GPU take other sides and lengths
  std::map<std::string, int> flip; ///< arrays whose own index runs down
  std::set<std::string> read;      ///< arrays that must not change any more
  std::set<std::string> written;   ///< in the outermost loop that is open
  std::vector<Node> times;         ///< loads of a time-indexed array
  int width, loops = 0, nested = 0;
  int localPercent = 0;  ///< how often private arrays are used
  int tensorPercent = 0; ///< and vectors and matrices
  bool inRange = false, single = false;
  bool wild = false;    ///< few statements, many of them hard to reverse
  bool inPlace = false; ///< overwrites what it has read
  std::string racing;   ///< an array whose work items meet, perhaps

private:
  static const std::vector<Wish> &wishes();
  const TensorOperation &choose(const std::vector<TensorOperation> &all);
  std::vector<Node> operandsOf(const TensorOperation &operation, int depth);

  Node neighbour(int extent);
  Node realLeaf(const std::string &type);
  Node load(const std::string &type);
  Node tame(int depth, const std::string &type);
  Node apply(const Function &function, const std::string &type, int depth);
  Node applyToReals(const Function &function, const std::string &type,
                    int depth);
  Node applyAnywhere(const Function &function, const std::string &type,
                     int depth);
  Node realFrom(const std::string &from, const std::string &to, int depth);
  Node integerLeaf(const std::string &type);
  Node integerFrom(const std::string &from, const std::string &to, int depth);
  Node compare(const std::string &head, const std::string &type, int depth);
  /// What the wish asks for, if it is a value of this type.
  const Function *wished(const std::vector<Function> &functions,
                         const std::string &type);
};

} // namespace costate::property
