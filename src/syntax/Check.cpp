#include "syntax/Check.h"

#include "syntax/Diagnostic.h"
#include "syntax/Print.h"

#include <algorithm>

namespace costate::syntax {
namespace {

/// What an operation takes and gives.
enum class Form : uint8_t {
  Numbers,    ///< numbers of one type, the same type
  Bits,       ///< integers or bools of one type, the same type
  Integers,   ///< integers of one type, the same type
  Floats,     ///< floats of one type, the same type
  Comparison, ///< values of one type, a bool
  Choice,     ///< a bool, and two values of the type of the result
  Cast,       ///< anything, anything
  BitCast,    ///< as many bits
  Ordinal,    ///< a number, an i64
  Philox,     ///< u64s, a u64
};

struct Signature {
  size_t operands;
  Form form;
};

Signature signatureOf(Op op) {
  static constexpr Signature signatures[] = {
#define COSTATE_OPERATION(Name, name, operands, form, doc)                     \
  {operands, Form::form},
#include "costate/detail/operations.def"
  };
  return signatures[static_cast<size_t>(op)];
}

bool isNumber(DType type) { return type != DType::Bool; }

bool fits(Form form, const std::vector<DType> &types, DType result) {
  auto all = [&](DType wanted) {
    return std::ranges::count(types, wanted) == std::ssize(types);
  };
  DType first = types.front();
  switch (form) {
  case Form::Numbers:
    return all(result) && isNumber(result);
  case Form::Bits:
    return all(result) && !isFloat(result);
  case Form::Integers:
    return all(result) && isInteger(result);
  case Form::Floats:
    return all(result) && isFloat(result);
  case Form::Comparison:
    return all(first) && result == DType::Bool;
  case Form::Choice:
    return first == DType::Bool && types[1] == result && types[2] == result;
  case Form::Cast:
    return true;
  case Form::BitCast:
    return sizeOf(first) == sizeOf(result) && isNumber(first) &&
           isNumber(result);
  case Form::Ordinal:
    return isNumber(first) && result == DType::I64;
  case Form::Philox:
    return all(DType::U64) && result == DType::U64;
  }
  return false;
}

std::string listOf(const std::vector<DType> &types) {
  std::string text;
  for (DType type : types)
    text += (text.empty() ? "" : ", ") + std::string(costate::nameOf(type));
  return "(" + text + ")";
}

class Checker {
public:
  explicit Checker(const Kernel &kernel) : kernel(kernel) {}

  std::optional<Failure> run() {
    for (const Argument &argument : kernel.arguments)
      if (argument.rank > maxRank)
        return badKernel(kernel.loc,
                         "an array of rank " + std::to_string(argument.rank),
                         "the largest rank is " + std::to_string(maxRank));
    block(kernel.body);
    return failure;
  }

private:
  void block(const Block &statements) {
    for (const Statement &one : statements) {
      statement(one);
      for (const Block &inner : one.blocks)
        block(inner);
    }
  }
  void statement(const Statement &statement);
  void pure(const Statement &statement);
  void access(const Statement &statement, size_t values);
  void update(const Statement &statement);
  void extent(const Statement &statement);
  void local(const Statement &statement, size_t index);
  void updateShared(const Statement &statement);
  void group(const Statement &statement);
  void range(const Statement &statement);
  void custom(const Statement &statement);

  DType typeOf(ValueId value) const { return kernel.values[value]; }
  std::vector<DType> typesOf(const Statement &statement) const {
    std::vector<DType> types;
    for (ValueId operand : statement.operands)
      types.push_back(typeOf(operand));
    return types;
  }
  bool are(const std::vector<ValueId> &values, DType type) const {
    return std::ranges::all_of(
        values, [&](ValueId value) { return typeOf(value) == type; });
  }
  void require(bool holds, const Statement &statement,
               const std::string &what) {
    if (!holds && !failure)
      failure = badKernel(statement.loc, what,
                          "convert with `cast`; values of different types do "
                          "not mix by themselves");
  }
  void require(const Statement &statement, ValueId value, DType type,
               const char *what) {
    require(typeOf(value) == type, statement,
            std::string(what) + " of type " + costate::nameOf(type) +
                " is given a value of type " + costate::nameOf(typeOf(value)));
  }

  const Kernel &kernel;
  std::optional<Failure> failure;
};

void Checker::pure(const Statement &statement) {
  Signature signature = signatureOf(statement.op);
  bool holds = statement.operands.size() == signature.operands &&
               fits(signature.form, typesOf(statement), statement.type);
  require(holds, statement,
          std::string("operation `") + nameOf(statement.op) +
              "` does not take " + listOf(typesOf(statement)) + " to " +
              costate::nameOf(statement.type));
}

/// The first `values` operands are elements, the others indices.
void Checker::access(const Statement &statement, size_t values) {
  const Argument &array = kernel.arguments[statement.argument];
  const auto &operands = statement.operands;
  auto rank = static_cast<int>(operands.size() - values);
  if (!array.isArray() || array.rank != rank)
    return require(false, statement,
                   "an array of rank " + std::to_string(array.rank) + " has " +
                       std::to_string(rank) + " indices");
  for (size_t i = 0; i < operands.size(); ++i)
    require(statement, operands[i], i < values ? array.type : DType::I64,
            i < values ? "an element" : "an index");
  if (statement.value != none)
    require(statement.type == array.type, statement,
            std::string("an element of type ") + costate::nameOf(array.type) +
                " is read as " + costate::nameOf(statement.type));
}

void Checker::update(const Statement &statement) {
  access(statement, 1);
  DType type = kernel.arguments[statement.argument].type;
  Op op = statement.op;
  bool isBits = op == Op::And || op == Op::Or || op == Op::Xor;
  bool holds = isBits ? !isFloat(type)
                      : isNumber(type) && (op == Op::Add || op == Op::Mul ||
                                           op == Op::Min || op == Op::Max);
  require(holds, statement,
          std::string("an element of type ") + costate::nameOf(type) +
              " has no atomic `" + nameOf(op) + "`");
}

void Checker::extent(const Statement &statement) {
  const Argument &array = kernel.arguments[statement.argument];
  require(static_cast<int64_t>(statement.dim) < array.rank, statement,
          "an array of rank " + std::to_string(array.rank) +
              " has no dimension " + std::to_string(statement.dim));
}

void Checker::local(const Statement &statement, size_t index) {
  DType type = kernel.locals[statement.argument].type;
  if (statement.kind == Kind::StoreLocal)
    require(statement, statement.operands[0], type, "an element");
  else
    require(statement.type == type, statement,
            std::string("an element of type ") + costate::nameOf(type) +
                " is read as " + costate::nameOf(statement.type));
  require(statement, statement.operands[index], DType::I64, "an index");
}

void Checker::updateShared(const Statement &statement) {
  local(statement, 1);
  DType type = kernel.locals[statement.argument].type;
  require(statement, statement.operands[0], type, "an element");
  Op op = statement.op;
  bool isBits = op == Op::And || op == Op::Or || op == Op::Xor;
  bool isOrdinary =
      op == Op::Add || op == Op::Mul || op == Op::Min || op == Op::Max;
  require(isNumber(type) && (isOrdinary || (isBits && !isFloat(type))),
          statement,
          std::string("a shared element of type ") + costate::nameOf(type) +
              " has no atomic `" + nameOf(op) + "`");
}

/// Whether an operand has the form that `letter` stands for.
static bool fits(char letter, DType type) {
  switch (letter) {
  case 'm':
    return type == DType::U32;
  case 'i':
    return type == DType::I32;
  case 'b':
    return type == DType::Bool;
  case 'v':
    return isNumber(type) && sizeOf(type) >= 4;
  case 'w':
    return isNumber(type) && sizeOf(type) == 4;
  }
  return false;
}

void Checker::group(const Statement &statement) {
  auto op = static_cast<GroupOp>(statement.bits);
  GroupForm form = formOf(op);
  std::vector<DType> types = typesOf(statement);
  bool holds = types.size() == form.operands.size();
  for (size_t k = 0; holds && k < types.size(); ++k)
    holds = fits(form.operands[k], types[k]);
  if (holds && form.result == 'v')
    holds = statement.type == types[1];
  require(holds, statement,
          std::string("`") + nameOf(op) + "` does not take " + listOf(types));
}

void Checker::range(const Statement &statement) {
  require(!statement.operands.empty(), statement,
          "a `parallel` without extents");
  require(are(statement.operands, DType::I64), statement,
          "the extents of a `parallel` are " + listOf(typesOf(statement)) +
              ", not i64");
  if (statement.value == none)
    return;
  const std::vector<ValueId> &results = statement.results;
  bool areFloats = std::ranges::all_of(
      results, [&](ValueId one) { return isFloat(typeOf(one)); });
  bool areIntegers = std::ranges::all_of(
      results, [&](ValueId one) { return isInteger(typeOf(one)); });
  bool isPair = results.size() == 2 && are(results, DType::I64);
  bool holds = statement.op == Op::Add ? areFloats || areIntegers
                                       : statement.op == Op::Min && isPair;
  std::vector<DType> types;
  for (ValueId result : results)
    types.push_back(typeOf(result));
  require(holds, statement,
          std::string("there is no reduction by `") + nameOf(statement.op) +
              "` of " + listOf(types));
}

void Checker::custom(const Statement &statement) {
  size_t floats = 0;
  for (ValueId input : statement.operands)
    floats += isFloat(typeOf(input));
  bool holds = isFloat(statement.type) &&
               are(statement.results, statement.type) &&
               statement.results.size() == floats + 1;
  require(holds, statement,
          "a `custom_derivative` has a float result, and a partial derivative "
          "of that type for each float argument");
}

void Checker::statement(const Statement &statement) {
  const auto &operands = statement.operands;
  switch (statement.kind) {
  case Kind::Pure:
    return pure(statement);
  case Kind::Extent:
    return extent(statement);
  case Kind::Load:
    return access(statement, 0);
  case Kind::Store:
  case Kind::Exchange:
    return access(statement, 1);
  case Kind::Update:
    return update(statement);
  case Kind::CompareExchange:
    return access(statement, 2);
  case Kind::LoadLocal:
    return local(statement, 0);
  case Kind::StoreLocal:
    return local(statement, 1);
  case Kind::UpdateShared:
    return updateShared(statement);
  case Kind::Group:
    return group(statement);
  case Kind::DeclareVar:
  case Kind::AssignVar:
    return require(statement, operands[0],
                   kernel.variables[statement.variable].type, "a variable");
  case Kind::ReadVar:
    return require(statement.type == kernel.variables[statement.variable].type,
                   statement, "a variable is read as another type");
  case Kind::If:
  case Kind::Assert:
    return require(statement, operands[0], DType::Bool, "a condition");
  case Kind::While:
    return require(statement, statement.condition, DType::Bool, "a condition");
  case Kind::For:
    return require(are(operands, DType::I64), statement,
                   "the bounds and the step of a `FOR` are " +
                       listOf(typesOf(statement)) + ", not i64");
  case Kind::Range:
    return range(statement);
  case Kind::Custom:
    return custom(statement);
  case Kind::Const:
  case Kind::Scalar:
  case Kind::Call: // made of what is checked
  case Kind::Result:
  case Kind::DeclareLocal:
  case Kind::Print:
  case Kind::Enter:
  case Kind::Leave:
  case Kind::Break:
  case Kind::Continue:
  case Kind::Return:
    return;
  }
}

} // namespace

std::optional<Failure> check(const Kernel &kernel) {
  return Checker(kernel).run();
}

} // namespace costate::syntax
