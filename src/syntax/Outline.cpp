#include "syntax/Outline.h"

#include "syntax/Extract.h"

#include <algorithm>
#include <set>
#include <span>

namespace costate::syntax {
namespace {

/// Statements of a function that is worth a call.
size_t leastCalled(Calls calls) {
  return calls == Calls::All ? 1 : calls == Calls::None ? SIZE_MAX : 64;
}

class Outliner {
public:
  Outliner(Kernel &kernel, const std::vector<NamedFunction> &named, Calls calls)
      : kernel(kernel), named(named), least(leastCalled(calls)) {}

  void run() {
    kernel.body = withoutSmall(std::move(kernel.body));
    if (!anyLarge)
      return;
    uses = usesOf(kernel);
    kernel.body = outlined(std::move(kernel.body));
    embedConstants();
  }

private:
  /// The marks of functions that are too small are of no use.
  Block withoutSmall(Block block) {
    Block result;
    std::vector<std::pair<size_t, uint64_t>> open; ///< place, and size until it
    uint64_t size = 0;
    for (Statement &statement : block) {
      for (Block &inner : statement.blocks) {
        inner = withoutSmall(std::move(inner));
        size += sizeOf(inner, kernel);
      }
      if (statement.kind == Kind::Enter)
        open.push_back({result.size(), size});
      size += !is(statement.kind, Role::Mark);
      bool isSmall = false;
      if (statement.kind == Kind::Leave) {
        auto [place, before] = open.back();
        open.pop_back();
        isSmall = size - before < least;
        if (isSmall)
          result.erase(result.begin() + place);
        anyLarge |= !isSmall;
      }
      if (!isSmall)
        result.push_back(std::move(statement));
    }
    for (; !open.empty(); open.pop_back()) // has no end
      result.erase(result.begin() + open.back().first);
    return result;
  }

  Block outlined(Block block) {
    Block result;
    std::vector<std::pair<size_t, uint64_t>> open; ///< place and function
    for (Statement &statement : block) {
      inCustom += statement.kind == Kind::Custom;
      for (Block &inner : statement.blocks)
        inner = outlined(std::move(inner));
      inCustom -= statement.kind == Kind::Custom;
      if (statement.kind == Kind::Enter) {
        open.push_back({result.size(), statement.bits});
      } else if (statement.kind == Kind::Leave) {
        auto [place, function] = open.back();
        open.pop_back();
        if (!inCustom)
          outline(result, place, named[function]);
      } else {
        result.push_back(std::move(statement));
      }
    }
    return result;
  }

  /// Arguments are converted before the body begins: numbers of the host, what
  /// variables hold, elements; vectors are copied to variables. Moves all but
  /// these copies to the front. They stay in front of the call, and the body is
  /// what follows.
  size_t separateArguments(Block &block, size_t first) const {
    std::set<VarId> copies;
    for (size_t at = first; at < block.size(); ++at) {
      if (block[at].kind == Kind::DeclareVar) {
        copies.insert(block[at].variable);
        continue;
      }
      if (!isArgument(block, at) || copies.contains(block[at].variable))
        break;
      auto place = block.begin() + at;
      std::rotate(block.begin() + first++, place, place + 1);
    }
    return first;
  }

  static bool isArgument(const Block &block, size_t at) {
    const Statement &statement = block[at];
    Kind kind = statement.kind;
    if (kind == Kind::Const)
      return !isStep(std::span(block).subspan(at), statement.value);
    if (kind == Kind::Pure)
      return statement.op == Op::Cast;
    return kind == Kind::ReadVar || kind == Kind::Load ||
           kind == Kind::LoadLocal;
  }

  static bool isStep(std::span<const Statement> statements, ValueId value) {
    return std::ranges::any_of(statements, [&](const Statement &statement) {
      return (statement.kind == Kind::For && statement.operands[2] == value) ||
             std::ranges::any_of(statement.blocks, [&](const Block &inner) {
               return isStep(inner, value);
             });
    });
  }

  /// What stands in `block` from `first` on becomes a call, if it can.
  void outline(Block &block, size_t first, const NamedFunction &name) {
    first = separateArguments(block, first);
    Block part(std::make_move_iterator(block.begin() + first),
               std::make_move_iterator(block.end()));
    block.resize(first);
    std::optional<Extraction> found;
    if (sizeOf(part, kernel) >= least)
      found = extract(part, kernel, uses);
    if (!found || found->outputs.empty())
      found.reset();
    else
      uses.add(part, -1);
    Block call = found ? callOf(*found, name) : std::move(part);
    if (found)
      uses.add(call, 1);
    std::ranges::move(call, std::back_inserter(block));
  }

  Block callOf(Extraction &found, const NamedFunction &name) {
    uint32_t number = functionOf(found, name);
    Kernel &function = kernel.functions[number];
    Block block;
    Statement call = make(Kind::Call, function.loc);
    call.argument = number;
    call.operands = found.values;
    call.indices = found.arrays;
    for (VarId variable : found.variables) {
      Statement &read = block.emplace_back(make(Kind::ReadVar, function.loc));
      read.variable = variable;
      define(read, none, kernel.variables[variable].type);
      call.operands.push_back(read.value);
    }
    std::vector<Statement> results;
    for (Extraction::Output &output : found.outputs) {
      uint32_t result = resultOf(function, output.inner);
      DType type = function.values[output.inner];
      if (result > 0 || call.value != none) {
        Statement &one = results.emplace_back(make(Kind::Result, function.loc));
        one.dim = result;
        define(one, output.value, type);
        output.value = one.value;
      } else {
        define(call, output.value, type);
        output.value = call.value;
      }
    }
    if (call.value == none)
      define(call, none, function.values[function.results[0]]);
    for (Statement &one : results)
      one.operands = {call.value};
    block.push_back(std::move(call));
    std::ranges::move(results, std::back_inserter(block));
    for (const Extraction::Output &output : found.outputs)
      if (output.variable != none) {
        Kind kind = output.declares ? Kind::DeclareVar : Kind::AssignVar;
        Statement &one = block.emplace_back(make(kind, function.loc));
        one.variable = output.variable;
        one.operands = {output.value};
      }
    return block;
  }

  static Statement make(Kind kind, Loc loc) {
    Statement statement;
    statement.kind = kind;
    statement.loc = loc;
    return statement;
  }

  /// As `value`, or as a new one.
  void define(Statement &statement, ValueId value, DType type) {
    if (value == none) {
      value = static_cast<ValueId>(kernel.values.size());
      kernel.values.push_back(type);
      uses.values.push_back(0);
    }
    statement.value = value;
    statement.type = type;
  }

  uint32_t functionOf(Extraction &found, const NamedFunction &name) {
    found.key.push_back(reinterpret_cast<uintptr_t>(name.id));
    auto [place, isNew] =
        known.try_emplace(found.key, uint32_t(kernel.functions.size()));
    if (isNew) {
      found.function.name = name.name;
      found.function.loc = name.loc;
      kernel.functions.push_back(std::move(found.function));
    }
    return place->second;
  }

  static uint32_t resultOf(Kernel &function, ValueId value) {
    auto place = std::ranges::find(function.results, value);
    if (place == function.results.end())
      place = function.results.insert(place, value);
    return static_cast<uint32_t>(place - function.results.begin());
  }

  //===-- Constants -------------------------------------------------------===//

  struct CallSite {
    Statement *call;
    size_t caller; ///< number of a function, or of the kernel after them
  };

  /// A parameter that is the same constant in all calls becomes one. Callers
  /// come first: what is embedded there is a constant for others.
  void embedConstants() {
    size_t count = kernel.functions.size();
    std::vector<std::vector<CallSite>> calls(count);
    constants.resize(count + 1);
    for (size_t caller = 0; caller <= count; ++caller)
      read(caller < count ? kernel.functions[caller].body : kernel.body, caller,
           calls);
    std::vector<Block> embedded(count);
    for (size_t number = count; number-- > 0;)
      embedded[number] = embed(number, calls[number]);
    for (size_t number = 0; number < count; ++number) {
      Block &body = kernel.functions[number].body;
      body.insert(body.begin(),
                  std::make_move_iterator(embedded[number].begin()),
                  std::make_move_iterator(embedded[number].end()));
    }
  }

  void read(Block &block, size_t caller,
            std::vector<std::vector<CallSite>> &calls) {
    for (Statement &statement : block) {
      if (statement.kind == Kind::Call)
        calls[statement.argument].push_back({&statement, caller});
      if (statement.kind == Kind::Const)
        constants[caller][statement.value] = statement.bits;
      for (Block &inner : statement.blocks)
        read(inner, caller, calls);
    }
  }

  /// The constants in the place of parameters.
  Block embed(size_t number, const std::vector<CallSite> &calls) {
    Kernel &function = kernel.functions[number];
    Block embedded;
    for (size_t k = function.parameters.size(); k-- > 0;) {
      std::optional<uint64_t> common = constantIn(calls, k);
      if (!common)
        continue;
      Statement &one = embedded.emplace_back(make(Kind::Const, function.loc));
      one.bits = *common;
      one.value = function.parameters[k];
      one.type = function.values[one.value];
      constants[number][one.value] = *common;
      function.parameters.erase(function.parameters.begin() + k);
      for (const CallSite &site : calls)
        site.call->operands.erase(site.call->operands.begin() + k);
    }
    return embedded;
  }

  /// The one constant that is argument `k` in all calls.
  std::optional<uint64_t> constantIn(const std::vector<CallSite> &calls,
                                     size_t k) const {
    std::optional<uint64_t> common;
    for (const CallSite &site : calls) {
      auto found = constants[site.caller].find(site.call->operands[k]);
      if (found == constants[site.caller].end() ||
          (common && *common != found->second))
        return std::nullopt;
      common = found->second;
    }
    return common;
  }

  Kernel &kernel;
  const std::vector<NamedFunction> &named;
  const size_t least;
  bool anyLarge = false;
  unsigned inCustom = 0;
  Uses uses;
  std::map<std::vector<uint64_t>, uint32_t> known;
  std::vector<std::unordered_map<ValueId, uint64_t>> constants; ///< by caller
};

} // namespace

void outlineFunctions(Kernel &kernel, const std::vector<NamedFunction> &named,
                      Calls calls) {
  Outliner(kernel, named, calls).run();
}

} // namespace costate::syntax
