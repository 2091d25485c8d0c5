#pragma once
/// Private arrays: small memory of one work item, or of the serial code.

#include "costate/control.h"

namespace costate {

/// An element of a `Local`. It stays a reference: `auto e = a[i]` reads later.
/// Nobody else sees it, so `+=` is a load, an addition and a store.
template <class T> class LocalElement : public detail::Ops<T> {
public:
  LocalElement(detail::Handle local, detail::Handle index, Loc loc)
      : local(local), index(index), loc(loc) {}
  LocalElement(const LocalElement &) = default;

  const LocalElement &operator=(const LocalElement &other) const {
    return assign(other.value(loc), loc);
  }
  LocalElement &operator=(const LocalElement &other) {
    assign(other.value(loc), loc);
    return *this;
  }
  const LocalElement &operator=(Source<T> source) const {
    return assign(source.value, source.loc);
  }

#define COSTATE_ASSIGN(symbol, op, Condition)                                  \
  const LocalElement &operator symbol(Source<T> source) const                  \
    requires(Condition)                                                        \
  {                                                                            \
    return update(detail::Op::op, source);                                     \
  }
  COSTATE_ASSIGN(+=, Add, detail::isNumber<T>)
  COSTATE_ASSIGN(-=, Sub, detail::isNumber<T>)
  COSTATE_ASSIGN(*=, Mul, detail::isNumber<T>)
  COSTATE_ASSIGN(/=, Div, detail::isNumber<T>)
  COSTATE_ASSIGN(%=, Rem, detail::isNumber<T>)
  COSTATE_ASSIGN(&=, And, std::is_integral_v<T>)
  COSTATE_ASSIGN(|=, Or, std::is_integral_v<T>)
  COSTATE_ASSIGN(^=, Xor, std::is_integral_v<T>)
  COSTATE_ASSIGN(<<=, Shl, isInteger(dtypeOf<T>))
  COSTATE_ASSIGN(>>=, Shr, isInteger(dtypeOf<T>))
#undef COSTATE_ASSIGN

  detail::Handle value(Loc at) const {
    return detail::loadLocal(dtypeOf<T>, local, index, at);
  }

private:
  template <class, class> friend class LocalTensor;

  const LocalElement &assign(detail::Handle value, Loc at) const {
    detail::storeLocal(local, index, value, at);
    return *this;
  }
  const LocalElement &update(detail::Op op, const Source<T> &source) const {
    return assign(detail::pure(op, dtypeOf<T>,
                               {value(source.loc), source.value}, source.loc),
                  source.loc);
  }

  detail::Handle local, index;
  Loc loc;
};

template <class T, int N> class Local {
  static_assert(!sizeof(T *), "the elements of a private array are numbers, "
                              "vectors or matrices; of structs declare one for "
                              "each member");
};

/// An array of N elements that is private to a work item, or to the serial
/// code. It starts with zeros where it is declared: in a loop, each iteration
/// has another one. Initialising with another one, or assigning it, copies.
template <Element T, int N> class Local<T, N> {
  static_assert(N >= 1 && N * sizeOf(dtypeOf<T>) <= 65536,
                "a private array has 1 or more elements, and 64 KiB at most");

public:
  Local(std::source_location place = std::source_location::current())
      : loc(place), handle(detail::declareLocal(dtypeOf<T>, N, loc)) {}
  Local(const Local &other,
        std::source_location place = std::source_location::current())
      : Local(place) {
    copy(other);
  }
  Local &operator=(const Local &other) {
    if (this != &other)
      copy(other);
    return *this;
  }

  LocalElement<T> operator[](IndexOperand index) const {
    return LocalElement<T>(handle, index.value, index.loc);
  }
  LocalElement<T> operator()(IndexOperand index) const {
    return (*this)[index];
  }

  /// How many elements there are.
  static constexpr int64_t size() { return N; }

private:
  /// Few elements one by one, others in a loop.
  void copy(const Local &other) const {
    auto number = [&](int64_t value) {
      return detail::constant(DType::I64, static_cast<uint64_t>(value), loc);
    };
    auto element = [&](detail::Handle index) {
      detail::Handle value =
          detail::loadLocal(dtypeOf<T>, other.handle, index, loc);
      detail::storeLocal(handle, index, value, loc);
    };
    if constexpr (N <= 8) {
      for (int k = 0; k < N; ++k)
        element(number(k));
    } else {
      element(detail::beginFor(number(0), number(N), number(1), loc));
      detail::end();
    }
  }

  Loc loc;
  detail::Handle handle;
};

} // namespace costate
