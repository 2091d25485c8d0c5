#pragma once
/// Structs of values in arrays:
///
///     struct Particle {
///       Vec<double, 3> position, velocity;
///       Var<double> mass;
///     };
///     COSTATE_STRUCT(Particle, position, velocity, mass)
///
/// Structs as values of a kernel need nothing: they are ordinary C++. All
/// members are numbers, vectors, matrices or such structs. Arguments are
/// Scalar<Particle>, and Host<Particle> at the call.

#include "costate/detail/each.h"
#include "costate/struct_array.h"
#include "costate/trace.h"

namespace costate::detail {

/// What COSTATE_STRUCT says about C; it is found through its namespace.
template <class C>
using StructOf = decltype(costateStruct(static_cast<C *>(nullptr)));

template <class C>
concept Registered = requires { typename StructOf<C>::Host; };

template <Registered C> struct HostTypeOf<C> {
  using type = typename StructOf<C>::Host;
};

template <Registered C> struct OfScalars<C> {
  template <class Source> static C make(Source &source) {
    return StructOf<C>::ofScalars(source);
  }
};

/// The first base of all references, so that members follow a comma.
struct StructReference {};

template <class... M> constexpr NumberCounts allNumbers(std::tuple<M...> *) {
  NumberCounts all;
  (all.add(FormOf<M>::numbers), ...);
  return all;
}

template <Registered C> struct FormOf<C> {
  using Members = typename StructOf<C>::Members;
  using Number = NumberOf<std::tuple_element_t<0, Members>>; ///< the first one
  using Host = typename StructOf<C>::Host;
  using Reference = typename StructOf<C>::Reference;
  static constexpr NumberCounts numbers =
      allNumbers(static_cast<Members *>(nullptr));
  static constexpr int count = numbers.of(dtypeOf<Number>);
  static Reference take(StructPlace &places) { return Reference(places); }
  static std::string name() { return StructOf<C>::name(); }
};

} // namespace costate::detail

namespace costate {
/// An element of an array of C, or an argument, on the host: a struct with
/// members of the same names.
template <class C> using Host = detail::HostOf<C>;

/// A struct that the caller passes, as a Host<C>; its members may have several
/// types. Assigning to one changes the copy of the kernel.
template <class C>
  requires detail::Registered<C>
class Scalar<C> : public C {
public:
  explicit Scalar(const C &value) : C(value) {}
};
} // namespace costate

#define COSTATE_MEMBER_TYPE(Name, member) , decltype(Name::member)
#define COSTATE_MEMBER_HOST(Name, member)                                      \
  ::costate::detail::HostOf<decltype(Name::member)> member;
#define COSTATE_MEMBER_REFERENCE(Name, member)                                 \
  typename ::costate::detail::FormOf<decltype(Name::member)>::Reference member;
#define COSTATE_MEMBER_TAKE(Name, member)                                      \
  , member(::costate::detail::FormOf<decltype(Name::member)>::take(places))
#define COSTATE_MEMBER_READ(Name, member) decltype(Name::member)(member),
#define COSTATE_MEMBER_SCALAR(Name, member)                                    \
  ::costate::detail::OfScalars<decltype(Name::member)>::make(source),
#define COSTATE_MEMBER_PASS(Name, member) costateUse(this->member);
#define COSTATE_MEMBER_USE(Name, member) use(value.member);
#define COSTATE_MEMBER_STORE(Name, member) this->member = costateFrom.member;

/// Registers the struct `Name` with these members, which are all it has, in
/// order. Stands after it, in its namespace.
#define COSTATE_STRUCT(Name, ...)                                              \
  struct CostateHost##Name {                                                   \
    COSTATE_EACH(COSTATE_MEMBER_HOST, Name, __VA_ARGS__)                       \
    template <class F> void costateEach(const F &costateUse) const {           \
      COSTATE_EACH(COSTATE_MEMBER_PASS, Name, __VA_ARGS__)                     \
    }                                                                          \
  };                                                                           \
  struct CostateReference##Name : ::costate::detail::StructReference {         \
    using CostateValue = Name;                                                 \
    COSTATE_EACH(COSTATE_MEMBER_REFERENCE, Name, __VA_ARGS__)                  \
    explicit CostateReference##Name(::costate::detail::StructPlace &places)    \
        : StructReference()                                                    \
              COSTATE_EACH(COSTATE_MEMBER_TAKE, Name, __VA_ARGS__) {}          \
    CostateReference##Name(const CostateReference##Name &) = default;          \
    operator Name() const {                                                    \
      return {COSTATE_EACH(COSTATE_MEMBER_READ, Name, __VA_ARGS__)};           \
    }                                                                          \
    const CostateReference##Name &operator=(const Name &costateFrom) const {   \
      COSTATE_EACH(COSTATE_MEMBER_STORE, Name, __VA_ARGS__)                    \
      return *this;                                                            \
    }                                                                          \
    const CostateReference##Name &                                             \
    operator=(const CostateReference##Name &value) const {                     \
      return *this = Name(value);                                              \
    }                                                                          \
    CostateReference##Name &operator=(const CostateReference##Name &value) {   \
      return const_cast<CostateReference##Name &>(*this = Name(value));        \
    }                                                                          \
  };                                                                           \
  struct CostateStruct##Name {                                                 \
    template <class, class... M> struct List {                                 \
      using type = std::tuple<M...>;                                           \
    };                                                                         \
    using Members = typename List<void COSTATE_EACH(COSTATE_MEMBER_TYPE, Name, \
                                                    __VA_ARGS__)>::type;       \
    using Host = CostateHost##Name;                                            \
    using Reference = CostateReference##Name;                                  \
    static const char *name() { return #Name; }                                \
    template <class F> static void each(const Name &value, const F &use) {     \
      COSTATE_EACH(COSTATE_MEMBER_USE, Name, __VA_ARGS__)                      \
    }                                                                          \
    template <class Source> static Name ofScalars(Source &source) {            \
      return {COSTATE_EACH(COSTATE_MEMBER_SCALAR, Name, __VA_ARGS__)};         \
    }                                                                          \
  };                                                                           \
  [[maybe_unused]] inline CostateStruct##Name costateStruct(Name *) {          \
    return {};                                                                 \
  }
