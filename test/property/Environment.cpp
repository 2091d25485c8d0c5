#include "property/Environment.h"

#include "property/Tensors.h"
#include "property/Vocabulary.h"

#include <algorithm>

namespace costate::property {
namespace {

bool isReduction(const Node &node) {
  for (const char *head : {"sum", "sums", "least", "most", "argmin", "argmax"})
    if (node.is(head))
      return true;
  return false;
}

/// Of numbers; what it compares is its first child.
bool isComparison(const Node &node) {
  for (const char *head : {"lt", "le", "gt", "ge", "eq", "ne"})
    if (node.is(head))
      return true;
  return false;
}

bool isOfTensor(const Node &node) {
  return std::ranges::any_of(tensorReductions(), [&](const auto &operation) {
    return node.is(operation.head);
  });
}

/// Whether `f` returns true for a value of some type.
template <class F> bool ofAnyType(F f) {
  for (const std::string &type : types())
    if (withType(typeNamed(type), f))
      return true;
  return false;
}

[[noreturn]] void fail(const Node &node) {
  throw InvalidProgram("not understood: " + print(node));
}

} // namespace

Environment::Inside::Inside(Environment &of, Construct construct)
    : of(of), outerPlace(of.place), outerLoops(of.loops) {
  of.place |= 1 << construct;
  if (construct == Range)
    of.place &= ~(1 << Serial);
  if (construct == For || construct == While)
    ++of.loops;
  if (of.loops > 1)
    of.place |= 1 << Nested;
}

Environment::Inside::~Inside() {
  of.place = outerPlace;
  of.loops = outerLoops;
}

template <class T> Expr<T> Environment::value(const Node &node) {
  return node.isList ? call<T>(node) : leaf<T>(node.text);
}

template <class T> Expr<T> Environment::leaf(const std::string &text) {
  if (auto place = names.find(text); place != names.end()) {
    if (auto *variable = std::any_cast<Variable<T>>(&place->second))
      return *variable->var;
    if constexpr (std::is_same_v<T, int64_t>)
      if (auto *index = std::any_cast<Index>(&place->second))
        return *index;
    throw InvalidProgram("another type: " + text);
  }
  if constexpr (std::is_same_v<T, double>)
    if (text == "p")
      return arguments.p;
  if constexpr (std::is_same_v<T, int32_t>)
    if (text == "q")
      return arguments.q;
  if constexpr (std::is_same_v<T, bool>)
    return Expr<bool>(text == "true");
  char *end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end)
    throw InvalidProgram("no such name: " + text);
  return Expr<T>(static_cast<T>(number));
}

template <class T> Expr<T> Environment::call(const Node &node) {
  if (node.is("load"))
    return load<T>(node);
  if (node.is("cast"))
    return cast<T>(node);
  if (node.is("get"))
    return get<T>(node);
  if (node.is("fetch"))
    return fetch<T>(node);
  if (isReduction(node))
    return reduction<T>(node);
  if (isOfTensor(node))
    note(node.text);
  else if (!node.is("idx") && !node.is("size") && !isComparison(node))
    note<T>(node.text);
  if (node.is("select"))
    return select(value<bool>(node[0]), value<T>(node[1]), value<T>(node[2]));
  if constexpr (std::is_same_v<T, double>)
    if (std::optional<Expr<double>> part = fromTensor(node))
      return *part;
  if constexpr (std::is_same_v<T, bool>)
    return truth(node);
  else
    return number<T>(node);
}

template <class T> Expr<T> Environment::cast(const Node &node) {
  note("cast " + node[0].text + " " + nameOf(dtypeOf<T>));
  return withType(typeNamed(node[0].text), [&](auto from) {
    return costate::cast<T>(value<decltype(from)>(node[1]));
  });
}

template <class T> Expr<T> Environment::number(const Node &node) {
  auto e = [&](size_t i) { return value<T>(node[i]); };
  if (node.is("add"))
    return e(0) + e(1);
  if (node.is("sub"))
    return e(0) - e(1);
  if (node.is("mul"))
    return e(0) * e(1);
  if (node.is("div"))
    return e(0) / e(1);
  if (node.is("rem"))
    return e(0) % e(1);
  if (node.is("min"))
    return min(e(0), e(1));
  if (node.is("max"))
    return max(e(0), e(1));
  if (node.is("neg"))
    return -e(0);
  if (node.is("abs"))
    return abs(e(0));
  if (node.is("clamp"))
    return clamp(e(0), e(1), e(2));
  if constexpr (FloatElement<T>)
    return real<T>(node);
  else
    return integer<T>(node);
}

template <class T> Expr<T> Environment::integer(const Node &node) {
  auto e = [&](size_t i) { return value<T>(node[i]); };
  if constexpr (std::is_same_v<T, int64_t>) {
    if (node.is("idx"))
      return abs(e(1) % e(0));
    if (node.is("size"))
      return arguments.x.size(0);
  }
  if constexpr (std::is_same_v<T, uint64_t>)
    if (node.is("philox"))
      return detail::call<T>(detail::Op::Philox,
                             std::source_location::current(), e(0), e(1), e(2));
  if (node.is("and"))
    return e(0) & e(1);
  if (node.is("or"))
    return e(0) | e(1);
  if (node.is("xor"))
    return e(0) ^ e(1);
  if (node.is("not"))
    return ~e(0);
  if (node.is("popcnt"))
    return popcnt(e(0));
  if (node.is("clz"))
    return clz(e(0));
  if (node.is("shl"))
    return e(0) << e(1);
  if (node.is("shr"))
    return e(0) >> e(1);
  fail(node);
}

template <class T> Expr<T> Environment::real(const Node &node) {
  auto e = [&](size_t i) { return value<T>(node[i]); };
#define COSTATE_INSTRUCTION(Name, name, doc)                                   \
  if (node.is(#name))                                                          \
    return name(e(0));
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, ...)                  \
  if (node.is(#name))                                                          \
    return COSTATE_FUNCTION_##operands(name);
#define COSTATE_FUNCTION_1(name) name(e(0))
#define COSTATE_FUNCTION_2(name) name(e(0), e(1))
#include "costate/detail/operations.def"
#undef COSTATE_FUNCTION_1
#undef COSTATE_FUNCTION_2
  if (node.is("fmod"))
    return fmod(e(0), e(1));
  if (node.is("fma"))
    return fma(e(0), e(1), e(2));
  fail(node);
}

Expr<bool> Environment::truth(const Node &node) {
  auto e = [&](size_t i) { return value<bool>(node[i]); };
  if (node.is("and"))
    return e(0) & e(1);
  if (node.is("or"))
    return e(0) | e(1);
  if (node.is("xor"))
    return e(0) ^ e(1);
  if (node.is("not"))
    return ~e(0);
  return withType(typeNamed(node[0].text),
                  [&](auto type) { return compare<decltype(type)>(node); });
}

/// (lt type a b)
template <class T> Expr<bool> Environment::compare(const Node &node) {
  Expr<T> a = value<T>(node[1]), b = value<T>(node[2]);
  note<T>(node.text);
  if (node.is("eq"))
    return a == b;
  if (node.is("ne"))
    return a != b;
  if constexpr (!std::is_same_v<T, bool>) {
    if (node.is("lt"))
      return a < b;
    if (node.is("le"))
      return a <= b;
    if (node.is("gt"))
      return a > b;
    if (node.is("ge"))
      return a >= b;
  }
  fail(node);
}

/// Calls `f` with the element that (_ array index... ) names.
template <class F> void Environment::withElement(const Node &node, F &&f) {
  const std::string &array = node[0].text;
  Arguments &all = arguments;
  if (array == "s")
    return f(all.s());
  if (array == "u" || array == "v")
    return f((array == "u" ? all.u : all.v)(at(node[1]), at(node[2])));
  Index i = at(node[1]);
  for (auto [name, vector] :
       {std::pair{"x", all.x}, {"y", all.y}, {"z", all.z}, {"out", all.out}})
    if (array == name)
      return f(vector(i));
  for (auto [name, vector] : {std::pair{"a", all.a}, {"b", all.b}})
    if (array == name)
      return f(vector(i));
  for (auto [name, vector] : {std::pair{"m", all.m}, {"n", all.n}})
    if (array == name)
      return f(vector(i));
  if (array == "g")
    return f(all.g(i));
  if (array == "h")
    return f(all.h(i));
  if (array == "w")
    return f(all.w(i));
  if (array == "c")
    return f(all.c(i));
  if (array == "d")
    return f(all.d(i));
  if (array == "e")
    return f(all.e(i));
  if (array == "o")
    return f(all.o(i));
  if (array == "r")
    return f(all.r(i));
  if (array == "f" || array == "l")
    return f((array == "f" ? all.f : all.l)(i));
  fail(node);
}

template <class T> Expr<T> Environment::load(const Node &node) {
  note<T>("load");
  Expr<T> result;
  bool found = false;
  withElement(node, [&](auto element) {
    if constexpr (std::is_same_v<decltype(element), ElementRef<T>>) {
      result = Expr<T>(element);
      found = true;
    }
  });
  if (!found)
    fail(node);
  return result;
}

template <class T>
Expr<T> Environment::fetchFrom(const ElementRef<T> &element,
                               const std::string &kind, const Expr<T> &expected,
                               const Expr<T> &value) {
  if (kind == "compare")
    return atomic_compare_exchange(element, expected, value);
  if (kind == "exchange")
    return atomic_exchange(element, value);
  if constexpr (std::is_integral_v<T>) {
    if (kind == "and")
      return atomic_and(element, value);
    if (kind == "or")
      return atomic_or(element, value);
    if (kind == "xor")
      return atomic_xor(element, value);
  }
  if constexpr (!std::is_same_v<T, bool>) {
    if (kind == "add")
      return atomic_add(element, value);
    if (kind == "sub")
      return atomic_sub(element, value);
    if (kind == "min")
      return atomic_min(element, value);
    if (kind == "max")
      return atomic_max(element, value);
  }
  throw InvalidProgram("no such atomic: " + kind);
}

template <class T> Expr<T> Environment::fetch(const Node &node) {
  const std::string &kind = node[0].text;
  size_t values = kind == "compare" ? 2 : 1;
  if (node.children.size() < 2 + values)
    fail(node);
  Node place = list("at", {node.children.begin() + 1,
                           node.children.end() - std::ptrdiff_t(values)});
  Expr<T> stored = value<T>(node.children.back());
  Expr<T> expected = value<T>(node.children[node.children.size() - values]);
  note<T>("fetch");
  Expr<T> result;
  bool found = false;
  withElement(place, [&](auto element) {
    if constexpr (std::is_same_v<decltype(element), ElementRef<T>>) {
      result = fetchFrom<T>(element, kind, expected, stored);
      found = true;
    }
  });
  if (!found)
    fail(node);
  return result;
}

template <class T> Expr<T> Environment::reduction(const Node &node) {
  note<T>(node.text);
  auto term = [&](Index i) {
    Block inner(*this);
    bind(node[0].text, i);
    return value<double>(node[2]);
  };
  Index n = at(node[1]);
  if constexpr (std::is_same_v<T, double>) {
    if (node.is("sums")) {
      VecExpr<double, 3> sums = sum(n, [&](Index i) {
        Block inner(*this);
        bind(node[0].text, i);
        Expr<double> x = value<double>(node[2]), y = value<double>(node[3]);
        return vec(x, y, x * y);
      });
      return sums[0] - 0.5 * sums[1] + 0.25 * sums[2];
    }
    if (node.is("sum"))
      return sum(n, term);
    if (node.is("least"))
      return minimum(n, term);
    if (node.is("most"))
      return maximum(n, term);
  }
  if constexpr (std::is_same_v<T, int64_t>) {
    if (node.is("argmin"))
      return argmin(n, term);
    if (node.is("argmax"))
      return argmax(n, term);
  }
  fail(node);
}

template <class T> Expr<T> Environment::get(const Node &node) {
  auto place = names.find(node[0].text);
  if (place == names.end())
    throw InvalidProgram("no such name: " + node[0].text);
  auto *local = std::any_cast<Private<T>>(&place->second);
  if (!local)
    fail(node);
  note<T>("get");
  return (**local)[at(node[1])];
}

void Environment::defineLocal(const Node &node) {
  withType(typeNamed(node[1].text), [&](auto type) {
    using T = decltype(type);
    names[node[0].text] = std::make_shared<Local<T, localSize>>();
    note<T>("local");
  });
}

template <class T>
bool Environment::writeLocal(const Node &node, std::any &name) {
  auto *local = std::any_cast<Private<T>>(&name);
  if (!local)
    return false;
  LocalElement<T> element = (**local)[at(node[1])];
  Expr<T> source = value<T>(node[2]);
  note<T>(node.text);
  if (node.is("put"))
    element = source;
  else if constexpr (!std::is_same_v<T, bool>)
    element += source;
  return true;
}

void Environment::writeLocal(const Node &node) {
  auto place = names.find(node[0].text);
  if (place == names.end())
    throw InvalidProgram("no such name: " + node[0].text);
  std::any &name = place->second;
  bool found = ofAnyType(
      [&](auto type) { return writeLocal<decltype(type)>(node, name); });
  if (!found)
    fail(node);
}

template <class T>
void Environment::writeTo(const ElementRef<T> &element, const Node &node) {
  Expr<T> stored = value<T>(node.children.back());
  note<T>(node.text);
  if (node.is("store")) {
    element = stored;
    return;
  }
  if constexpr (std::is_same_v<T, bool>)
    fail(node);
  else
    element += stored;
}

void Environment::write(const Node &node) {
  withElement(node, [&](auto element) { writeTo(element, node); });
}

template <class T> bool Environment::assign(const Node &node, std::any &name) {
  auto *variable = std::any_cast<Variable<T>>(&name);
  if (!variable)
    return false;
  Expr<T> source = value<T>(node[1]);
  note<T>(node.is("add") ? "add to" : node.text);
  if (variable->loops < loops)
    note<T>("carry");
  if (node.is("set"))
    *variable->var = source;
  if constexpr (!std::is_same_v<T, bool>) {
    if (node.is("add"))
      *variable->var += source;
    if (node.is("scale"))
      *variable->var *= source;
  }
  return true;
}

void Environment::define(const Node &node) {
  if (!node.isList || node.children.size() < 2)
    fail(node);
  if (node.is("var"))
    return withType(typeNamed(node[1].text), [&](auto type) {
      using T = decltype(type);
      auto variable = std::make_shared<Var<T>>(value<T>(node[2]));
      note<T>("var");
      names[node[0].text] = Variable<T>{variable, loops};
    });
  auto place = names.find(node[0].text);
  if (place == names.end())
    throw InvalidProgram("no such name: " + node[0].text);
  std::any &name = place->second;
  bool found =
      ofAnyType([&](auto type) { return assign<decltype(type)>(node, name); });
  if (!found)
    fail(node);
}

void Environment::set(const std::string &name, const Expr<double> &value) {
  auto place = names.find(name);
  if (place == names.end())
    return;
  if (auto *variable = std::any_cast<Variable<double>>(&place->second))
    *variable->var = value;
}

void Environment::message(const Node &node) {
  Expr<double> e = value<double>(node[0]);
  note(node.text);
  if (node.is("print"))
    print("{} of {}", e, 3);
  else
    assert_(~(sin(e) > 1.5), "the sine of {}", e);
}

template Expr<double> Environment::value<double>(const Node &);
template Expr<int64_t> Environment::value<int64_t>(const Node &);
template Expr<int32_t> Environment::value<int32_t>(const Node &);
template Expr<bool> Environment::value<bool>(const Node &);

} // namespace costate::property
