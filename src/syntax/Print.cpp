#include "syntax/Print.h"

#include <algorithm>
#include <bit>
#include <sstream>

namespace costate::syntax {

const char *nameOf(Op op) {
  static constexpr const char *names[] = {
#define COSTATE_OPERATION(Name, name, ...) #name,
#include "costate/detail/operations.def"
  };
  return names[static_cast<size_t>(op)];
}

const char *nameOf(GroupOp op) {
  static constexpr const char *names[] = {
#define COSTATE_GROUP(Name, name, operands, result) name,
#include "costate/detail/group_operations.def"
  };
  return names[static_cast<size_t>(op)];
}

GroupForm formOf(GroupOp op) {
  static constexpr GroupForm forms[] = {
#define COSTATE_GROUP(Name, name, operands, result) {operands, result},
#include "costate/detail/group_operations.def"
  };
  return forms[static_cast<size_t>(op)];
}

bool Argument::takes(std::span<const int64_t> shape) const {
  if (static_cast<int>(shape.size()) != rank)
    return false;
  for (size_t dim = 0; dim < extents.size(); ++dim)
    if (extents[dim] >= 0 && shape[dim] != extents[dim])
      return false;
  return true;
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
  void text(const Statement &statement, int depth);
  template <class... Parts> void write(const Parts &...parts) {
    (out << ... << parts);
  }
  void pure(const Statement &statement);
  void local(const Statement &statement);
  void group(const Statement &statement);
  void assign(const Statement &statement);
  void exchange(const Statement &statement);
  void update(const Statement &statement);
  void message(const Statement &statement);
  void counted(const Statement &statement);
  void range(const Statement &statement);
  void custom(const Statement &statement, int depth);
  void call(const Statement &statement);
  void blocks(const Statement &statement, int depth);
  void values(const std::vector<ValueId> &ids, size_t first = 0,
              size_t last = SIZE_MAX);
  /// `parts`, and the element whose indices are `operands` from `first` on.
  template <class... Parts>
  void element(const Statement &statement, size_t first,
               const Parts &...parts) {
    write(parts..., "a", statement.argument, "[");
    values(statement.operands, first);
    write("]");
  }
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
    for (size_t dim = 0; dim < argument.extents.size(); ++dim)
      if (argument.extents[dim] >= 0)
        out << " [" << dim << "]=" << argument.extents[dim];
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
  text(statement, depth);
  if (is(statement.kind, Role::Control))
    blocks(statement, depth);
}

void Printer::values(const std::vector<ValueId> &ids, size_t first,
                     size_t last) {
  for (size_t i = first; i < std::min(ids.size(), last); ++i)
    out << (i == first ? "%" : ", %") << ids[i];
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

void Printer::text(const Statement &statement, int depth) {
  const std::vector<ValueId> &operands = statement.operands;
  switch (statement.kind) {
  case Kind::Const:
    return constant(statement);
  case Kind::Scalar:
    return write("scalar a", statement.argument);
  case Kind::Extent:
    return write("extent a", statement.argument, "[", statement.dim, "]");
  case Kind::Load:
    return element(statement, 0, "load ");
  case Kind::LoadLocal:
  case Kind::DeclareLocal:
  case Kind::StoreLocal:
  case Kind::UpdateShared:
    return local(statement);
  case Kind::Group:
    return group(statement);
  case Kind::Pure:
    return pure(statement);
  case Kind::Custom:
    return custom(statement, depth);
  case Kind::Call:
    return call(statement);
  case Kind::Result:
    return write("result ", statement.dim, " of %", operands[0]);
  case Kind::ReadVar:
    return write("read v", statement.variable);
  case Kind::DeclareVar:
  case Kind::AssignVar:
    return assign(statement);
  case Kind::Store:
    return element(statement, 1, "store %", operands[0], ", ");
  case Kind::Update:
    return update(statement);
  case Kind::Exchange:
  case Kind::CompareExchange:
    return exchange(statement);
  case Kind::Print:
  case Kind::Assert:
    return message(statement);
  case Kind::Enter:
  case Kind::Leave:
    return write(statement.kind == Kind::Enter ? "enter" : "leave");
  case Kind::If:
    return write("if %", operands[0]);
  case Kind::For:
    return counted(statement);
  case Kind::While:
    return write("while");
  case Kind::Range:
    return range(statement);
  case Kind::Break:
    return write("break");
  case Kind::Continue:
    return write("continue");
  case Kind::Return:
    return write("return");
  }
}

void Printer::local(const Statement &statement) {
  std::string name = "local" + std::to_string(statement.argument);
  if (statement.kind == Kind::DeclareLocal)
    return write(name, statement.bits ? " = shared" : " = zeros");
  const std::vector<ValueId> &operands = statement.operands;
  if (statement.kind == Kind::LoadLocal)
    write("load ");
  else if (statement.kind == Kind::StoreLocal)
    write("store %", operands[0], ", ");
  else
    write("atomic_", nameOf(statement.op), " %", operands[0], ", ");
  write(name, "[%", operands.back(), "]");
}

void Printer::group(const Statement &statement) {
  write(nameOf(static_cast<GroupOp>(statement.bits)),
        statement.operands.empty() ? "" : " ");
  values(statement.operands);
}

void Printer::pure(const Statement &statement) {
  write(nameOf(statement.op), " ");
  values(statement.operands);
  write(" : ", costate::nameOf(statement.type));
}

void Printer::assign(const Statement &statement) {
  write(statement.kind == Kind::DeclareVar ? "var v" : "v", statement.variable,
        " = %", statement.operands[0]);
}

void Printer::exchange(const Statement &statement) {
  const std::vector<ValueId> &operands = statement.operands;
  if (statement.kind == Kind::Exchange)
    return element(statement, 1, "exchange %", operands[0], ", ");
  element(statement, 2, "compare_exchange %", operands[1], " by %", operands[0],
          ", ");
}

void Printer::update(const Statement &statement) {
  element(statement, 1, "atomic_", nameOf(statement.op), " %",
          statement.operands[0], ", ");
}

void Printer::message(const Statement &statement) {
  write(statement.kind == Kind::Print ? "print " : "assert ",
        texts[statement.bits], statement.operands.empty() ? "" : " ");
  values(statement.operands);
}

void Printer::counted(const Statement &statement) {
  write("for %", statement.value, " = %", statement.operands[0], " to %",
        statement.operands[1], " by %", statement.operands[2]);
}

void Printer::range(const Statement &statement) {
  write("range (");
  values(statement.indices);
  write(") in (");
  values(statement.operands);
  write(")");
  if (statement.bits)
    write(" in blocks of ", statement.bits);
  if (statement.defines()) {
    write(" gives ", nameOf(statement.op), " ");
    values(statement.results);
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
