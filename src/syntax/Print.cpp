#include "syntax/Print.h"

#include <algorithm>
#include <bit>
#include <sstream>

namespace costate::syntax {

const char *nameOf(Op op) {
  // clang-format off
  static constexpr const char *names[] = {
      "neg", "add", "sub", "mul", "div", "rem", "min", "max", "clamp", "abs",
      "and", "or", "xor", "not", "shl", "shr", "popcnt", "clz", "philox", "lt",
      "le", "gt", "ge", "eq", "ne", "select", "cast", "bit_cast", "floor",
      "ceil", "round", "trunc", "sqrt", "rsqrt", "cbrt", "exp", "exp2",
      "expm1", "log", "log2", "log10", "log1p", "pow", "hypot", "sin", "cos",
      "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh",
      "acosh", "atanh", "erf", "erfc", "fma", "stop_gradient", "ordinal",
      "by_order"};
  // clang-format on
  static_assert(std::size(names) == static_cast<size_t>(Op::ByOrder) + 1);
  return names[static_cast<size_t>(op)];
}

std::string argumentText(const std::vector<Argument> &arguments, size_t index) {
  const Argument &own = arguments[index];
  if (!own.number)
    return "argument " + std::to_string(index + 1);
  std::string text = "argument " + std::to_string(own.number);
  if (own.form.isPart)
    return std::string("the ") + costate::nameOf(own.type) + " members of " +
           text;
  if (own.isArray() || own.form.name.empty())
    return text;
  size_t first = index;
  while (first > 0 && arguments[first - 1].number == own.number)
    --first;
  return "number " + std::to_string(index - first + 1) + " of " + text;
}

namespace {

class Printer {
public:
  std::string run(const Kernel &kernel);

private:
  void code(const Kernel &kernel);
  void block(const Block &block, int depth);
  void statement(const Statement &statement, int depth);
  void rest(const Statement &statement);
  void header(const Statement &statement);
  void custom(const Statement &statement, int depth);
  void call(const Statement &statement);
  void blocks(const Statement &statement, int depth);
  void values(const std::vector<ValueId> &ids, size_t first = 0,
              size_t last = SIZE_MAX);
  void element(const Statement &statement, size_t first);
  void constant(const Statement &statement);
  std::ostream &line(int depth) {
    return out << '\n' << std::string(2 * depth, ' ');
  }

  std::ostringstream out;
  std::vector<std::string> texts, names; ///< names: of functions
};

std::string Printer::run(const Kernel &kernel) {
  for (const Kernel &function : kernel.functions)
    names.push_back(function.name);
  for (const Kernel &function : kernel.functions) {
    out << "function ";
    code(function);
    line(1) << "gives ";
    values(function.results);
    out << '\n';
  }
  texts = kernel.texts;
  out << "kernel ";
  code(kernel);
  out << '\n';
  return out.str();
}

void Printer::code(const Kernel &kernel) {
  out << kernel.name << "(";
  for (size_t i = 0; i < kernel.parameters.size(); ++i)
    out << (i ? ", %" : "%") << kernel.parameters[i] << ": "
        << costate::nameOf(kernel.values[kernel.parameters[i]]);
  if (!kernel.parameters.empty() && !kernel.arguments.empty())
    out << ", ";
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const Argument &argument = kernel.arguments[i];
    out << (i ? ", a" : "a") << i << ": "
        << (argument.isArray() ? "array " : "")
        << costate::nameOf(argument.type);
    if (argument.isArray())
      out << ' ' << argument.rank;
  }
  out << ")";
  block(kernel.body, 1);
}

void Printer::block(const Block &block, int depth) {
  for (const Statement &one : block)
    statement(one, depth);
}

void Printer::statement(const Statement &statement, int depth) {
  line(depth);
  if (statement.kind != Kind::For) {
    for (size_t k = 0; k < statement.defines(); ++k)
      out << (k ? ", %" : "%") << statement.value + k;
    out << (statement.defines() ? " = " : "");
  }
  if (statement.kind == Kind::Custom) {
    custom(statement, depth);
  } else if (statement.kind >= Kind::If && statement.kind <= Kind::Range) {
    header(statement);
    blocks(statement, depth);
  } else {
    rest(statement);
  }
}

void Printer::values(const std::vector<ValueId> &ids, size_t first,
                     size_t last) {
  for (size_t i = first; i < std::min(ids.size(), last); ++i)
    out << (i == first ? "%" : ", %") << ids[i];
}

void Printer::element(const Statement &statement, size_t first) {
  out << "a" << statement.argument << "[";
  values(statement.operands, first);
  out << "]";
}

void Printer::constant(const Statement &statement) {
  out << "const ";
  if (statement.type == DType::F64)
    out << std::bit_cast<double>(statement.bits);
  else if (statement.type == DType::F32)
    out << std::bit_cast<float>(static_cast<uint32_t>(statement.bits));
  else if (statement.type == DType::F16)
    out << f16::from_bits(static_cast<uint16_t>(statement.bits));
  else if (statement.type == DType::I8)
    out << +static_cast<int8_t>(statement.bits);
  else if (statement.type == DType::I16)
    out << static_cast<int16_t>(statement.bits);
  else if (statement.type == DType::I32)
    out << static_cast<int32_t>(statement.bits);
  else if (statement.type == DType::I64)
    out << static_cast<int64_t>(statement.bits);
  else
    out << statement.bits;
  out << " : " << costate::nameOf(statement.type);
}

void Printer::rest(const Statement &statement) {
  switch (statement.kind) {
  case Kind::Const:
    return constant(statement);
  case Kind::Scalar:
    out << "scalar a" << statement.argument;
    return;
  case Kind::Extent:
    out << "extent a" << statement.argument << "[" << statement.dim << "]";
    return;
  case Kind::Load:
    out << "load ";
    return element(statement, 0);
  case Kind::LoadLocal:
    out << "load local" << statement.argument << "[%" << statement.operands[0]
        << "]";
    return;
  case Kind::DeclareLocal:
    out << "local" << statement.argument << " = zeros";
    return;
  case Kind::StoreLocal:
    out << "store %" << statement.operands[0] << ", local" << statement.argument
        << "[%" << statement.operands[1] << "]";
    return;
  case Kind::Pure:
    out << nameOf(statement.op) << " ";
    values(statement.operands);
    out << " : " << costate::nameOf(statement.type);
    return;
  case Kind::Call:
    return call(statement);
  case Kind::Result:
    out << "result " << statement.dim << " of %" << statement.operands[0];
    return;
  case Kind::ReadVar:
    out << "read v" << statement.variable;
    return;
  case Kind::DeclareVar:
    out << "var v" << statement.variable << " = %" << statement.operands[0];
    return;
  case Kind::AssignVar:
    out << "v" << statement.variable << " = %" << statement.operands[0];
    return;
  case Kind::Store:
    out << "store %" << statement.operands[0] << ", ";
    return element(statement, 1);
  case Kind::Update:
    out << "atomic_" << nameOf(statement.op) << " %" << statement.operands[0]
        << ", ";
    return element(statement, 1);
  case Kind::Exchange:
    out << "exchange %" << statement.operands[0] << ", ";
    return element(statement, 1);
  case Kind::CompareExchange:
    out << "compare_exchange %" << statement.operands[1] << " by %"
        << statement.operands[0] << ", ";
    return element(statement, 2);
  case Kind::Print:
  case Kind::Assert:
    out << (statement.kind == Kind::Print ? "print " : "assert ")
        << texts[statement.bits] << (statement.operands.empty() ? "" : " ");
    return values(statement.operands);
  case Kind::Break:
    out << "break";
    return;
  case Kind::Continue:
    out << "continue";
    return;
  default:
    out << "return";
    return;
  }
}

void Printer::header(const Statement &statement) {
  if (statement.kind == Kind::If) {
    out << "if %" << statement.operands[0];
  } else if (statement.kind == Kind::For) {
    out << "for %" << statement.value << " = %" << statement.operands[0]
        << " to %" << statement.operands[1] << " by %" << statement.operands[2];
  } else if (statement.kind == Kind::While) {
    out << "while";
  } else {
    out << "range (";
    values(statement.indices);
    out << ") in (";
    values(statement.operands);
    out << ")";
    if (statement.defines()) {
      out << " gives " << nameOf(statement.op) << " ";
      values(statement.results);
    }
  }
}

void Printer::custom(const Statement &statement, int depth) {
  size_t arity = statement.operands.size();
  out << "custom (";
  values(statement.operands);
  out << ") as (";
  values(statement.indices, 0, arity);
  out << ")";
  block(statement.blocks[0], depth + 1);
  line(depth + 1) << "gives ";
  values(statement.results, 0, 1);
  line(depth) << "partials (";
  values(statement.indices, arity);
  out << ")";
  block(statement.blocks[1], depth + 1);
  line(depth + 1) << "gives ";
  values(statement.results, 1);
}

void Printer::call(const Statement &statement) {
  out << "call " << names[statement.argument] << "(";
  values(statement.operands);
  for (size_t i = 0; i < statement.indices.size(); ++i)
    out << (i || !statement.operands.empty() ? ", a" : "a")
        << statement.indices[i];
  out << ")";
}

void Printer::blocks(const Statement &statement, int depth) {
  block(statement.blocks[0], depth + 1);
  if (statement.blocks.size() < 2)
    return;
  if (statement.kind == Kind::While)
    line(depth) << "do %" << statement.condition;
  else
    line(depth) << "else";
  block(statement.blocks[1], depth + 1);
}

} // namespace

std::string print(const Kernel &kernel) { return Printer().run(kernel); }

} // namespace costate::syntax
