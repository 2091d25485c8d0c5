#include "property/Reference.h"

#include "base/HostFunctions.h"
#include "base/Philox.h"
#include "property/Program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace costate::property {
namespace {

using namespace syntax;

/// More statements than any program of the generator needs.
constexpr int64_t mostStatements = 20'000'000;

struct Stop {};

//===-- Representations ---------------------------------------------------===//

template <class T> uint64_t bitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T> T valueOf(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// What numbers of type T are computed in: f16 in float, and rounded once.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, f16>, float, T>;

//===-- Operations --------------------------------------------------------===//

template <class T> bool isNaN(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value);
  return false;
}

/// Of a number and NaN the number; of equal ones the first.
template <class T> T least(T a, T b) { return b < a || isNaN(a) ? b : a; }
template <class T> T largest(T a, T b) { return b > a || isNaN(a) ? b : a; }

template <class T> bool compare(Op op, T a, T b) {
  switch (op) {
  case Op::Lt:
    return a < b;
  case Op::Le:
    return a <= b;
  case Op::Gt:
    return a > b;
  case Op::Ge:
    return a >= b;
  case Op::Eq:
    return a == b;
  default:
    return a != b;
  }
}

/// Towards zero, saturating; NaN gives 0.
template <class To, class From> To toInteger(From value) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(value))
    return 0;
  From above = std::ldexp(From(1), Limits::digits); // the first too large
  if (value >= above)
    return Limits::max();
  if (value <= (Limits::is_signed ? -above : 0))
    return Limits::min();
  return static_cast<To>(value);
}

template <class To, class From> To convert(From value) {
  if constexpr (std::is_same_v<To, bool>)
    return value != From(0);
  else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>)
    return toInteger<To>(value);
  else
    return static_cast<To>(value);
}

bool pure(Op op, bool a, bool b, bool) {
  switch (op) {
  case Op::And:
    return a && b;
  case Op::Or:
    return a || b;
  case Op::Xor:
    return a != b;
  default:
    return !a;
  }
}

template <std::integral T> T quotient(T a, T b) {
  if (b == 0)
    return 0;
  if (b == T(-1) && std::is_signed_v<T>)
    return T(0 - std::make_unsigned_t<T>(a));
  return a / b;
}

/// What overflows wraps.
template <std::integral T> T pure(Op op, T a, T b, T c) {
  using U = std::make_unsigned_t<T>;
  U count = U(b) % std::numeric_limits<U>::digits;
  switch (op) {
  case Op::Neg:
    return T(0 - U(a));
  case Op::Add:
    return T(U(a) + U(b));
  case Op::Sub:
    return T(U(a) - U(b));
  case Op::Mul:
    return T(uint64_t(U(a)) * U(b));
  case Op::Div:
    return quotient(a, b);
  case Op::Rem:
    return b == 0 ? 0 : T(U(a) - uint64_t(U(quotient(a, b))) * U(b));
  case Op::Min:
    return least(a, b);
  case Op::Max:
    return largest(a, b);
  case Op::Clamp:
    return least(largest(a, b), c);
  case Op::Abs:
    return a < 0 ? T(0 - U(a)) : a;
  case Op::And:
    return a & b;
  case Op::Or:
    return a | b;
  case Op::Xor:
    return a ^ b;
  case Op::Not:
    return ~a;
  case Op::Popcnt:
    return std::popcount(U(a));
  case Op::Clz:
    return std::countl_zero(U(a));
  case Op::Shl:
    return T(U(a) << count);
  case Op::Philox:
    return T(philox(U(a), U(b), U(c)));
  default:
    return a >> count;
  }
}

template <std::floating_point T> T pure(Op op, T a, T b, T c) {
  switch (op) {
  case Op::Neg:
    return -a;
  case Op::Add:
    return a + b;
  case Op::Sub:
    return a - b;
  case Op::Mul:
    return a * b;
  case Op::Div:
    return a / b;
  case Op::Min:
    return least(a, b);
  case Op::Max:
    return largest(a, b);
  case Op::Clamp:
    return least(largest(a, b), c);
  case Op::Rem:
    return std::fmod(a, b);
  case Op::Fma:
    return std::fma(a, b, c);
  case Op::Abs:
    return std::fabs(a);
#define COSTATE_INSTRUCTION(Name, name, doc)                                   \
  case Op::Name:                                                               \
    return std::name(a);
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, ...)                  \
  case Op::Name:                                                               \
    return COSTATE_FUNCTION_##operands(host::name);
#define COSTATE_FUNCTION_1(function) function(a)
#define COSTATE_FUNCTION_2(function) function(a, b)
#include "costate/detail/operations.def"
#undef COSTATE_FUNCTION_1
#undef COSTATE_FUNCTION_2
  default: // StopGradient
    return a;
  }
}

/// In the order of the numbers; NaN comes last.
template <class T> int64_t ordinal(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    int64_t bits = valueOf<int64_t>(bitsOf<double>(std::abs(double(value))));
    if (isNaN(value))
      return INT64_MAX;
    return std::signbit(value) ? -bits - 1 : bits;
  }
  if constexpr (std::is_same_v<T, uint64_t>)
    return int64_t(value - (uint64_t(1) << 63));
  return int64_t(value);
}

/// What an element becomes: NaN is ignored, and -0 is less than 0.
template <class T> T updated(Op op, T old, T value) {
  if (op != Op::Min && op != Op::Max)
    return pure(op, old, value, T());
  if (isNaN(old) || isNaN(value))
    return least(old, value);
  bool isLess = value < old;
  if constexpr (std::is_floating_point_v<T>)
    isLess |= value == old && std::signbit(value) && !std::signbit(old);
  bool isMore = value != old && !isLess;
  if constexpr (std::is_floating_point_v<T>)
    isMore |= value == old && std::signbit(old) && !std::signbit(value);
  return (op == Op::Min ? isLess : isMore) ? value : old;
}

//===-- Statements --------------------------------------------------------===//

class Evaluation {
public:
  Evaluation(const Kernel &kernel,
             std::vector<interpreter::InterpreterArgument> arguments)
      : kernel(kernel), arguments(std::move(arguments)),
        values(kernel.values.size()), variables(kernel.variables.size()),
        locals(kernel.locals.size()) {}

  void run() { run(kernel.body); }

private:
  enum class Then { Next, Break, Continue, Return };

  Then run(const Block &block) {
    for (const Statement &statement : block)
      if (Then then = run(statement); then != Then::Next)
        return then;
    return Then::Next;
  }

  Then run(const Statement &statement) {
    if (--statementsLeft < 0)
      throw Stop();
    switch (statement.kind) {
    case Kind::If:
      return branch(statement);
    case Kind::For:
      return forLoop(statement);
    case Kind::While:
      return whileLoop(statement);
    case Kind::Range:
      return range(statement);
    case Kind::Break:
      return Then::Break;
    case Kind::Continue:
      return Then::Continue;
    case Kind::Return:
      return Then::Return;
    case Kind::Const:
      return define(statement, statement.bits);
    case Kind::Scalar:
      return define(statement, scalar(statement));
    case Kind::Extent:
      return define(statement, extent(statement));
    case Kind::Load:
      return define(statement, load(statement));
    case Kind::LoadLocal:
      return define(statement, loadLocal(statement));
    case Kind::Pure:
      return define(statement, pure(statement));
    case Kind::Custom:
      return define(statement, custom(statement));
    case Kind::ReadVar:
      return define(statement, variables[statement.variable]);
    case Kind::DeclareVar:
    case Kind::AssignVar:
      return assign(statement);
    case Kind::DeclareLocal:
      return declareLocal(statement);
    case Kind::StoreLocal:
      return storeLocal(statement);
    case Kind::Store:
    case Kind::Update:
    case Kind::Exchange:
    case Kind::CompareExchange:
      return write(statement);
    case Kind::Print:
    case Kind::Assert:
      return Then::Next;
    case Kind::Call:
    case Kind::Result:
    case Kind::UpdateShared:
    case Kind::Group:
    case Kind::Enter:
    case Kind::Leave:
      throw std::logic_error("a statement that random programs do not have");
    }
    return Then::Next;
  }

  Then define(const Statement &statement, uint64_t bits) {
    values[statement.value] = bits;
    return Then::Next;
  }

  Then assign(const Statement &statement) {
    variables[statement.variable] = operand(statement, 0);
    return Then::Next;
  }

  Then declareLocal(const Statement &statement) {
    locals[statement.argument].assign(kernel.locals[statement.argument].size,
                                      0);
    return Then::Next;
  }

  uint64_t extent(const Statement &statement) const {
    return arguments[statement.argument].array->extents[statement.dim];
  }

  Then branch(const Statement &statement) {
    if (operand(statement, 0))
      return run(statement.blocks[0]);
    return statement.blocks.size() > 1 ? run(statement.blocks[1]) : Then::Next;
  }

  /// hi is excluded, in both directions.
  Then forLoop(const Statement &statement) {
    auto bound = [&](size_t i) { return int64_t(operand(statement, i)); };
    int64_t lo = bound(0), hi = bound(1), step = bound(2);
    if (step == 0)
      throw Stop();
    for (__int128 i = lo; step > 0 ? i < hi : i > hi; i += step) {
      values[statement.value] = uint64_t(i);
      Then then = run(statement.blocks[0]);
      if (then == Then::Break || then == Then::Return)
        return then == Then::Return ? then : Then::Next;
    }
    return Then::Next;
  }

  Then whileLoop(const Statement &statement) {
    while (run(statement.blocks[0]), values[statement.condition]) {
      Then then = run(statement.blocks[1]);
      if (then == Then::Break || then == Then::Return)
        return then == Then::Return ? then : Then::Next;
    }
    return Then::Next;
  }

  /// A RETURN ends its work item.
  Then range(const Statement &statement) {
    int64_t total = 1;
    for (ValueId extent : statement.operands)
      total *= std::max<int64_t>(values[extent], 0);
    std::vector<uint64_t> results(statement.defines(),
                                  statement.op == Op::Min ? INT64_MAX : 0);
    for (int64_t workItem = 0; workItem < total; ++workItem) {
      uint64_t rest = workItem;
      for (size_t dim = statement.indices.size(); dim-- > 0;) {
        uint64_t extent = operand(statement, dim);
        values[statement.indices[dim]] = rest % extent;
        rest /= extent;
      }
      run(statement.blocks[0]);
      if (statement.op == Op::Min && statement.defines())
        takeLeast(statement, results);
      else
        for (size_t k = 0; k < results.size(); ++k)
          results[k] = folded(statement.op, statement.results[k], results[k]);
    }
    if (!results.empty())
      std::ranges::copy(results, values.begin() + statement.value);
    return Then::Next;
  }

  void takeLeast(const Statement &statement, std::vector<uint64_t> &least) {
    int64_t key = int64_t(values[statement.results[0]]);
    int64_t place = int64_t(values[statement.results[1]]);
    if (std::pair(key, place) < std::pair(int64_t(least[0]), int64_t(least[1])))
      least = {uint64_t(key), uint64_t(place)};
  }

  uint64_t folded(Op op, ValueId one, uint64_t result) const {
    uint64_t term = values[one];
    return withType(kernel.values[one], [&](auto type) {
      using T = decltype(type);
      if constexpr (std::is_same_v<T, bool>)
        return result;
      else
        return bitsOf(
            property::pure(op, valueOf<T>(result), valueOf<T>(term), T()));
    });
  }

  uint64_t operand(const Statement &statement, size_t i) const {
    return values[statement.operands[i]];
  }

  uint64_t scalar(const Statement &statement) const {
    const interpreter::InterpreterArgument &argument =
        arguments[statement.argument];
    return withType(statement.type, [&](auto type) {
      using T = decltype(type);
      return bitsOf(std::is_floating_point_v<T> ? T(argument.real)
                                                : T(argument.integer));
    });
  }

  /// Null if an index is out of range.
  std::byte *element(const Statement &statement, size_t firstIndex) {
    interpreter::HostArray &array = *arguments[statement.argument].array;
    uint64_t at = 0;
    for (size_t dim = 0; dim < array.extents.size(); ++dim) {
      uint64_t index = operand(statement, firstIndex + dim),
               extent = array.extents[dim];
      if (index >= extent)
        return nullptr;
      at = at * extent + index;
    }
    return &array.bytes[at * sizeOf(kernel.arguments[statement.argument].type)];
  }

  /// Out of range only as the right operand of a `&` or `|` that does not need
  /// it.
  uint64_t load(const Statement &statement) {
    uint64_t bits = 0;
    if (std::byte *from = element(statement, 0))
      std::memcpy(&bits, from, sizeOf(statement.type));
    return bits;
  }

  /// The same.
  uint64_t loadLocal(const Statement &statement) const {
    const std::vector<uint64_t> &local = locals[statement.argument];
    uint64_t index = operand(statement, 0);
    return index < local.size() ? local[index] : 0;
  }

  Then storeLocal(const Statement &statement) {
    std::vector<uint64_t> &local = locals[statement.argument];
    uint64_t index = operand(statement, 1);
    if (index >= local.size())
      throw Stop();
    local[index] = operand(statement, 0);
    return Then::Next;
  }

  Then write(const Statement &statement) {
    bool compares = statement.kind == Kind::CompareExchange;
    std::byte *to = element(statement, compares ? 2 : 1);
    if (!to)
      throw Stop();
    withType(kernel.values[statement.operands[0]], [&](auto type) {
      using T = decltype(type);
      T value = valueOf<T>(operand(statement, 0)), old;
      std::memcpy(&old, to, sizeof old);
      if (statement.kind == Kind::Update)
        value = T(updated<Computed<T>>(statement.op, old, value));
      if (compares && bitsOf(old) != operand(statement, 1))
        value = old;
      std::memcpy(to, &value, sizeof value);
      if (statement.value != none)
        values[statement.value] = bitsOf(old);
    });
    return Then::Next;
  }

  uint64_t custom(const Statement &statement) {
    for (size_t i = 0; i < statement.operands.size(); ++i)
      values[statement.indices[i]] = operand(statement, i);
    run(statement.blocks[0]);
    return values[statement.results[0]];
  }

  uint64_t pure(const Statement &statement) const {
    if (statement.op == Op::Select)
      return operand(statement, operand(statement, 0) ? 1 : 2);
    return withType(kernel.values[statement.operands[0]], [&](auto type) {
      return pureOn<decltype(type)>(statement);
    });
  }

  template <class T> uint64_t pureOn(const Statement &statement) const {
    using C = Computed<T>;
    C operands[3] = {};
    for (size_t i = 0; i < statement.operands.size(); ++i)
      operands[i] = valueOf<T>(operand(statement, i));
    auto [a, b, c] = operands;
    if (statement.op == Op::Cast)
      return withType(statement.type, [&](auto to) {
        return bitsOf(convert<decltype(to)>(a));
      });
    if (statement.op == Op::Ordinal)
      return bitsOf(ordinal(a));
    if (statement.op >= Op::Lt && statement.op <= Op::Ne)
      return compare(statement.op, a, b);
    return bitsOf(T(property::pure(statement.op, a, b, c)));
  }

  const Kernel &kernel;
  std::vector<interpreter::InterpreterArgument> arguments;
  std::vector<uint64_t> values;              ///< of each ValueId, zero extended
  std::vector<uint64_t> variables;           ///< of each VarId
  std::vector<std::vector<uint64_t>> locals; ///< elements of private arrays
  int64_t statementsLeft = mostStatements;
};

} // namespace

bool evaluate(const Kernel &kernel,
              std::vector<interpreter::InterpreterArgument> arguments) {
  try {
    Evaluation(kernel, std::move(arguments)).run();
    return true;
  } catch (const Stop &) {
    return false;
  }
}

} // namespace costate::property
