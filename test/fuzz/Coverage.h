#pragma once
/// Which operations have been differentiated where.

#include "fuzz/Check.h"

#include <array>
#include <map>

namespace costate::fuzz {

/// Where an operation stands.
enum class Construct {
  Serial,
  Range,
  Branch,
  For,
  WhileBefore,
  WhileBody,
  Nest,
  count
};
enum class DerivativeMode { Forward, Reverse, count };

class Coverage {
public:
  /// Counts the operations of `subject` that have derivatives, if those have
  /// been checked.
  void add(const Case &subject, const Verdict &verdict);

  /// One line for each operation with a rule, one column for each construct
  /// and mode.
  std::string table() const;
  /// Operations with a rule that have not been seen everywhere, and where.
  std::vector<std::string> missing() const;

private:
  using Cells = std::array<std::array<uint64_t, size_t(DerivativeMode::count)>,
                           size_t(Construct::count)>;
  std::map<std::string, Cells> cells;
};

/// The operations that the derivatives know.
std::vector<std::string> differentiableOperations();

} // namespace costate::fuzz
