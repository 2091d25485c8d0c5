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
/// members are numbers, vectors, matrices or such structs; in arrays of one
/// element type. Arguments are Scalar<Particle>, and Host<Particle> at the
/// call.

#include "costate/composite_array.h"
#include "costate/detail/each.h"
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
  static C make(Session &session) { return StructOf<C>::ofScalars(session); }
};

template <class First, class... Others>
constexpr bool oneNumber(std::tuple<First, Others...> *) {
  return (std::is_same_v<NumberOf<First>, NumberOf<Others>> && ...);
}
template <class... M> constexpr int countOf(std::tuple<M...> *) {
  return (FormOf<M>::count + ...);
}

template <Registered C> struct FormOf<C> {
  using Members = typename StructOf<C>::Members;
  static_assert(oneNumber(static_cast<Members *>(nullptr)),
                "the members of a struct in an array have one element type; "
                "put others into an array of their own");
  using Number = NumberOf<std::tuple_element_t<0, Members>>;
  using Host = typename StructOf<C>::Host;
  using Reference = typename StructOf<C>::Reference;
  static constexpr int count = countOf(static_cast<Members *>(nullptr));
  static Reference reference(const ComponentPlace &place) {
    ComponentPlace next = place;
    return Reference::make(next);
  }
  static std::string name() { return StructOf<C>::name(); }
};

/// A reference to the next member.
template <class M> auto nextMember(ComponentPlace &place) {
  ComponentPlace here = place;
  place.first += FormOf<M>::count;
  return FormOf<M>::reference(here);
}

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
#define COSTATE_MEMBER_NEXT(Name, member)                                      \
  ::costate::detail::nextMember<decltype(Name::member)>(place),
#define COSTATE_MEMBER_READ(Name, member) decltype(Name::member)(member),
#define COSTATE_MEMBER_SCALAR(Name, member)                                    \
  ::costate::detail::OfScalars<decltype(Name::member)>::make(session),
#define COSTATE_MEMBER_PASS(Name, member) use(member);
#define COSTATE_MEMBER_STORE(Name, member) member = value.member;

/// Registers the struct `Name` with these members, which are all it has, in
/// order. Stands behind it, in its namespace.
#define COSTATE_STRUCT(Name, ...)                                              \
  struct CostateHost##Name {                                                   \
    COSTATE_EACH(COSTATE_MEMBER_HOST, Name, __VA_ARGS__)                       \
    template <class F> void costateEach(const F &use) const {                  \
      COSTATE_EACH(COSTATE_MEMBER_PASS, Name, __VA_ARGS__)                     \
    }                                                                          \
  };                                                                           \
  struct CostateReference##Name {                                              \
    COSTATE_EACH(COSTATE_MEMBER_REFERENCE, Name, __VA_ARGS__)                  \
    static CostateReference##Name                                              \
    make(::costate::detail::ComponentPlace &place) {                           \
      return {COSTATE_EACH(COSTATE_MEMBER_NEXT, Name, __VA_ARGS__)};           \
    }                                                                          \
    operator Name() const {                                                    \
      return {COSTATE_EACH(COSTATE_MEMBER_READ, Name, __VA_ARGS__)};           \
    }                                                                          \
    const CostateReference##Name &operator=(const Name &value) const {         \
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
    static Name ofScalars(::costate::detail::Session &session) {               \
      return {COSTATE_EACH(COSTATE_MEMBER_SCALAR, Name, __VA_ARGS__)};         \
    }                                                                          \
  };                                                                           \
  [[maybe_unused]] inline CostateStruct##Name costateStruct(Name *) {          \
    return {};                                                                 \
  }
