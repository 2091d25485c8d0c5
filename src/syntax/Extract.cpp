#include "syntax/Extract.h"

#include <algorithm>
#include <set>

namespace costate::syntax {

Uses usesOf(const Kernel &kernel) {
  Uses uses;
  uses.values.resize(kernel.values.size());
  uses.variables.resize(kernel.variables.size());
  uses.locals.resize(kernel.locals.size());
  uses.add(kernel.body, 1);
  return uses;
}

size_t sizeOf(const Block &block, const Kernel &kernel) {
  size_t size = block.size();
  for (const Statement &statement : block) {
    if (statement.kind == Kind::Call)
      size += sizeOf(kernel.functions[statement.argument].body, kernel);
    for (const Block &inner : statement.blocks)
      size += sizeOf(inner, kernel);
  }
  return size;
}

namespace {

//===-- What can be a function --------------------------------------------===//

/// Finds out whether a part only computes.
class Check {
public:
  bool passes(const Block &block, bool inLoop = false) {
    return std::ranges::all_of(block, [&](const Statement &statement) {
      return passes(statement, inLoop);
    });
  }

private:
  bool passes(const Statement &statement, bool inLoop) {
    switch (statement.kind) {
    case Kind::Scalar:
    case Kind::Store:
    case Kind::Update:
    case Kind::Exchange:
    case Kind::CompareExchange:
    case Kind::Print:
    case Kind::Assert:
    case Kind::Range:
    case Kind::Return:
    case Kind::UpdateShared:
    case Kind::Group:
      return false;
    case Kind::Break:
    case Kind::Continue:
      return inLoop;
    case Kind::Const:
      if (statement.bits)
        steps.insert(statement.value);
      return true;
    case Kind::DeclareLocal:
      locals.insert(statement.argument);
      return statement.bits == 0; // not shared by a block
    case Kind::LoadLocal:
    case Kind::StoreLocal:
      return locals.contains(statement.argument);
    case Kind::For: // a step of 0 is an error with a place
      return steps.contains(statement.operands[2]) &&
             passes(statement.blocks[0], true);
    case Kind::While:
      return passes(statement.blocks[0]) && passes(statement.blocks[1], true);
    case Kind::Custom:
    case Kind::If:
      return std::ranges::all_of(statement.blocks, [&](const Block &block) {
        return passes(block, inLoop);
      });
    case Kind::Extent:
    case Kind::Load:
    case Kind::Pure:
    case Kind::Call:
    case Kind::Result:
    case Kind::ReadVar:
    case Kind::DeclareVar:
    case Kind::AssignVar:
    case Kind::Enter:
    case Kind::Leave:
      return true;
    }
    return false;
  }

  std::set<ValueId> steps; ///< constants other than 0
  std::set<uint32_t> locals;
};

//===-- Numbers of its own ------------------------------------------------===//

/// Numbers in the order of the first request.
class Numbering {
public:
  uint32_t operator[](uint32_t old) {
    auto [found, isNew] = numbers.try_emplace(old, order.size());
    if (isNew)
      order.push_back(old);
    return found->second;
  }
  bool contains(uint32_t old) const { return numbers.contains(old); }
  const std::vector<uint32_t> &all() const { return order; }

private:
  std::map<uint32_t, uint32_t> numbers;
  std::vector<uint32_t> order;
};

class Extractor {
public:
  Extractor(const Block &part, const Kernel &kernel, const Uses &all)
      : part(part), kernel(kernel), all(all) {
    inside.add(part, 1);
  }

  std::optional<Extraction> run() {
    if (!Check().passes(part) || sharesLocals())
      return std::nullopt;
    findDefinitions(part);
    findArguments(part);
    numberArguments();
    result.function.body = declared();
    for (const Statement &statement : part)
      result.function.body.push_back(renumbered(statement));
    addOutputs();
    describe();
    writeKey();
    return std::move(result);
  }

private:
  bool sharesLocals() const {
    return std::ranges::any_of(inside.locals, [&](const auto &local) {
      return local.second != all.locals[local.first];
    });
  }

  void findDefinitions(const Block &block) {
    for (const Statement &statement : block) {
      if (statement.value != none)
        defined.insert(statement.value);
      if (statement.kind == Kind::Custom)
        defined.insert(statement.indices.begin(), statement.indices.end());
      if (statement.kind == Kind::DeclareVar)
        declaredVariables.insert(statement.variable);
      for (const Block &inner : statement.blocks)
        findDefinitions(inner);
    }
  }

  void findArguments(const Block &block) {
    for (const Statement &statement : block) {
      forEachOperand(statement, [&](ValueId value) {
        if (!defined.contains(value))
          values[value];
      });
      if (statement.variable != none &&
          !declaredVariables.contains(statement.variable)) {
        variables[statement.variable];
        if (statement.kind == Kind::AssignVar)
          assigned.insert(statement.variable);
      }
      for (const Block &inner : statement.blocks)
        findArguments(inner);
    }
  }

  /// The values from outside are parameters, then outer variables.
  void numberArguments() {
    result.values = values.all();
    result.variables = variables.all();
    size_t count = result.values.size() + result.variables.size();
    for (uint32_t k = 0; k < count; ++k) {
      bool isValue = k < result.values.size();
      result.function.parameters.push_back(k);
      result.function.values.push_back(
          isValue ? kernel.values[result.values[k]]
                  : kernel.variables[result.variables[k - result.values.size()]]
                        .type);
    }
    firstInner = static_cast<uint32_t>(count);
  }

  Block declared() {
    Block block;
    for (size_t k = 0; k < result.variables.size(); ++k) {
      Statement &one = block.emplace_back();
      one.kind = Kind::DeclareVar;
      one.variable = static_cast<VarId>(k);
      one.operands = {static_cast<ValueId>(result.values.size() + k)};
      one.loc = part.front().loc;
    }
    return block;
  }

  ValueId numberOf(ValueId value) {
    return values.contains(value) ? values[value] : firstInner + inner[value];
  }

  uint32_t argumentOf(const Statement &statement) {
    switch (traitsOf(statement.kind).argument) {
    case Counted::Array:
      return arrays[statement.argument];
    case Counted::Local:
      return locals[statement.argument];
    case Counted::Nothing:
    case Counted::Scalar: // stays in front of the part
    case Counted::Function:
      return statement.argument;
    }
    return none;
  }

  Statement renumbered(const Statement &old) {
    Statement statement = old;
    forEachOperand(statement, [&](ValueId &value) { value = numberOf(value); });
    if (statement.value != none)
      statement.value = numberOf(statement.value);
    if (statement.variable != none)
      statement.variable = variables[statement.variable];
    if (statement.kind == Kind::Custom)
      for (ValueId &index : statement.indices)
        index = numberOf(index);
    if (statement.kind == Kind::Call)
      for (uint32_t &array : statement.indices)
        array = arrays[array];
    statement.argument = argumentOf(statement);
    for (Block &block : statement.blocks)
      for (Statement &one : block)
        one = renumbered(one);
    return statement;
  }

  void addOutputs() {
    for (const Statement &statement : part)
      if (statement.value != none &&
          all.values[statement.value] > inside.values[statement.value])
        result.outputs.push_back(
            {statement.value, numberOf(statement.value), none, false});
    for (const Statement &statement : part)
      if (statement.kind == Kind::DeclareVar &&
          all.variables[statement.variable] >
              inside.variables[statement.variable])
        addVariable(statement.variable, true);
    for (VarId variable : result.variables)
      if (assigned.contains(variable))
        addVariable(variable, false);
  }

  /// The last value of a variable.
  void addVariable(VarId variable, bool declares) {
    Statement &read = result.function.body.emplace_back();
    read.kind = Kind::ReadVar;
    read.type = kernel.variables[variable].type;
    read.variable = variables[variable];
    read.loc = part.back().loc;
    read.value = firstInner + extra(read.type);
    result.outputs.push_back({none, read.value, variable, declares});
  }

  /// A number of a value that the kernel does not have.
  uint32_t extra(DType type) {
    extraTypes.push_back(type);
    return inner[static_cast<uint32_t>(kernel.values.size() +
                                       extraTypes.size() - 1)];
  }

  void describe() {
    Kernel &function = result.function;
    for (uint32_t old : inner.all())
      function.values.push_back(old < kernel.values.size()
                                    ? kernel.values[old]
                                    : extraTypes[old - kernel.values.size()]);
    for (uint32_t old : variables.all())
      function.variables.push_back(kernel.variables[old]);
    for (uint32_t old : locals.all())
      function.locals.push_back(kernel.locals[old]);
    result.arrays = arrays.all();
    for (uint32_t old : arrays.all())
      function.arguments.push_back(kernel.arguments[old]);
  }

  void writeKey() {
    const Kernel &function = result.function;
    auto add = [&](auto... numbers) { (result.key.push_back(numbers), ...); };
    add(function.parameters.size(), function.values.size());
    for (DType type : function.values)
      add(uint64_t(type));
    for (const Variable &variable : function.variables)
      add(uint64_t(variable.type));
    for (const Local &local : function.locals)
      add(uint64_t(local.type), uint64_t(local.size));
    for (const Argument &argument : function.arguments)
      add(uint64_t(argument.type), uint64_t(argument.rank));
    writeKey(function.body);
  }

  void writeKey(const Block &block) {
    result.key.push_back(block.size());
    for (const Statement &one : block) {
      for (uint64_t number :
           {uint64_t(one.kind), uint64_t(one.op), uint64_t(one.type),
            uint64_t(one.value), uint64_t(one.argument), uint64_t(one.variable),
            uint64_t(one.dim), one.bits, uint64_t(one.condition)})
        result.key.push_back(number);
      for (const std::vector<ValueId> *list :
           {&one.operands, &one.indices, &one.results}) {
        result.key.push_back(list->size());
        result.key.insert(result.key.end(), list->begin(), list->end());
      }
      result.key.push_back(one.blocks.size());
      for (const Block &inner : one.blocks)
        writeKey(inner);
    }
  }

  const Block &part;
  const Kernel &kernel;
  const Uses &all;
  UseCounts<std::unordered_map<uint32_t, uint32_t>> inside;
  std::set<ValueId> defined;
  std::set<VarId> declaredVariables, assigned;
  Numbering values, inner, variables, arrays, locals;
  std::vector<DType> extraTypes;
  uint32_t firstInner = 0;
  Extraction result;
};

} // namespace

std::optional<Extraction> extract(const Block &part, const Kernel &kernel,
                                  const Uses &all) {
  return Extractor(part, kernel, all).run();
}

} // namespace costate::syntax
