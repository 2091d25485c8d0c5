#pragma once
/// Which parts of the language the programs of a run have used, and where.

#include <array>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace costate::property {

/// Where something stands. All that apply count: an `if` in a `for` of a range
/// is in `Range`, `For` and `If`.
enum Construct : uint8_t { Serial, Range, If, For, While, Nested };
inline constexpr size_t constructs = 6;

/// What one program uses: sets of constructs, as bits.
using Uses = std::map<std::string, uint8_t>;

/// How compiled code was run.
enum class Covered : uint8_t { Primal, Gradient, Tangent, Second };
inline constexpr size_t modes = 4;

/// Counts programs whose compiled code was right, by what they use, in which
/// construct, and how they were run.
class Coverage {
public:
  void add(const Uses &uses, Covered mode);
  void add(const Coverage &other);
  /// A row for each thing, a column for each construct; the cells that stayed
  /// empty once more at the end.
  void print(std::ostream &out) const;
  std::vector<std::string> emptyCells() const;

private:
  using Row = std::array<std::array<unsigned, modes>, constructs>;
  std::map<std::string, Row> rows;
};

} // namespace costate::property
