#pragma once
/// Which part of a block is evaluated only where the left operand of `&` or `|`
/// leaves the result open.

#include "syntax/Syntax.h"

namespace costate::lowering {

/// A bool `a & b` or `a | b` *guards* the statements that compute b, if one of
/// them is a load, nothing else uses them, and no statement with an effect
/// stands between them and the operator: `(i < n) & (x(i) > 0)` loads only
/// where i < n.
class Guards {
public:
  /// `uses` counts the operands of the whole kernel; `position` is scratch
  /// space, one entry per value.
  Guards(const syntax::Block &block, const std::vector<uint32_t> &uses,
         std::vector<uint32_t> &position);

  /// Evaluated by an operator further down.
  bool isGuarded(size_t at) const { return owner[at] != syntax::none; }
  /// The statements that the operator at `at` guards; empty if it does not.
  const std::vector<uint32_t> &guardedBy(size_t at) const;

private:
  void claim(size_t at, uint32_t firstMovable);
  bool isMovable(syntax::ValueId value, uint32_t first, uint32_t last) const;

  const syntax::Block &block;
  const std::vector<uint32_t> &uses;
  const std::vector<uint32_t> &position;
  std::vector<uint32_t> owner;
  std::vector<std::vector<uint32_t>> guarded; ///< by operator; may be empty
};

} // namespace costate::lowering
