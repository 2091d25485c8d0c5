#include "lowering/Promote.h"

#include <optional>

namespace costate::lowering {

using namespace syntax;

namespace {

/// Loops and branches pass variables on one by one.
constexpr int64_t mostVariables = 32;

class Promoter {
public:
  explicit Promoter(const Kernel &original)
      : kernel(original), index(kernel.values.size()),
        first(kernel.locals.size()) {}

  Kernel run() {
    if (kernel.locals.empty())
      return std::move(kernel);
    std::vector<bool> known(kernel.locals.size(), true);
    findKnown(kernel.body, known);
    for (size_t local = 0; local < known.size(); ++local)
      if (known[local] && kernel.locals[local].size <= mostVariables)
        addVariables(local);
    kernel.body = promoted(kernel.body);
    return std::move(kernel);
  }

private:
  /// Notes constants, and which arrays are not accessed by them.
  void findKnown(const Block &block, std::vector<bool> &known) {
    for (const Statement &statement : block) {
      if (statement.kind == Kind::Const && statement.type == DType::I64)
        index[statement.value] = statement.bits;
      bool isShared = statement.kind == Kind::DeclareLocal && statement.bits;
      if (isShared || (isAccess(statement) && !elementOf(statement)))
        known[statement.argument] = false;
      for (const Block &inner : statement.blocks)
        findKnown(inner, known);
    }
  }

  static bool isAccess(const Statement &statement) {
    return statement.kind == Kind::LoadLocal ||
           statement.kind == Kind::StoreLocal;
  }

  std::optional<uint64_t> elementOf(const Statement &access) const {
    std::optional<uint64_t> at = index[access.operands.back()];
    uint64_t size = static_cast<uint64_t>(kernel.locals[access.argument].size);
    return at && *at < size ? at : std::nullopt;
  }

  void addVariables(size_t local) {
    const Local &array = kernel.locals[local];
    first[local] = static_cast<VarId>(kernel.variables.size());
    for (int64_t k = 0; k < array.size; ++k)
      kernel.variables.push_back({array.type, array.loc});
  }

  Block promoted(Block &block) {
    Block result;
    for (Statement &statement : block) {
      for (Block &inner : statement.blocks)
        inner = promoted(inner);
      bool isOfLocal =
          isAccess(statement) || statement.kind == Kind::DeclareLocal;
      if (isOfLocal && first[statement.argument])
        promote(std::move(statement), result);
      else
        result.push_back(std::move(statement));
    }
    return result;
  }

  void promote(Statement statement, Block &result) {
    VarId variable = *first[statement.argument];
    if (statement.kind == Kind::DeclareLocal)
      return declare(statement, variable, result);
    bool loads = statement.kind == Kind::LoadLocal;
    statement.variable = variable + static_cast<VarId>(*elementOf(statement));
    statement.kind = loads ? Kind::ReadVar : Kind::AssignVar;
    statement.operands.pop_back();
    statement.argument = none;
    result.push_back(std::move(statement));
  }

  void declare(const Statement &local, VarId variable, Block &result) {
    const Local &array = kernel.locals[local.argument];
    Statement zero{.kind = Kind::Const, .type = array.type};
    zero.loc = local.loc;
    zero.value = static_cast<ValueId>(kernel.values.size());
    kernel.values.push_back(array.type);
    Statement one{.kind = Kind::DeclareVar};
    one.loc = local.loc;
    one.operands = {zero.value};
    result.push_back(std::move(zero));
    for (int64_t k = 0; k < array.size; ++k) {
      one.variable = variable + static_cast<VarId>(k);
      result.push_back(one);
    }
  }

  Kernel kernel;
  std::vector<std::optional<uint64_t>> index; ///< constants, of each ValueId
  std::vector<std::optional<VarId>> first;    ///< of the elements' variables
};

} // namespace

Kernel promoteLocals(const Kernel &kernel) { return Promoter(kernel).run(); }

} // namespace costate::lowering
