#pragma once
/// Control flow in a kernel as blocks. No semicolon follows a block:
///
///     FOR (k, 0, n) {                  // or FOR (k, n - 1, -1, -1)
///       IF (x(k) < 0) { CONTINUE; }
///       ELIF (x(k) > 9) { BREAK; }
///       ELSE { s += x(k); }
///     }
///     WHILE (s > 1) { s *= 0.5; }
///
/// `break`, `continue` and `else` of C++ do not compile in these places. Braces
/// around a block are not optional where an ELIF or ELSE follows.

#include "costate/control.h"

#define COSTATE_BLOCK(...)                                                     \
  if (__VA_ARGS__; false) {                                                    \
  } else

#define IF(...)                                                                \
  COSTATE_BLOCK([[maybe_unused]] ::costate::detail::IfScope costateScope{      \
      __VA_ARGS__})
#define ELSE                                                                   \
  COSTATE_BLOCK([[maybe_unused]] ::costate::detail::ElseScope costateScope)
#define ELIF(...)                                                              \
  COSTATE_BLOCK([[maybe_unused]] ::costate::detail::ElifScope costateScope{    \
      [&]() -> ::costate::Expr<bool> { return __VA_ARGS__; }})
#define WHILE(...)                                                             \
  COSTATE_BLOCK([[maybe_unused]] ::costate::detail::WhileScope costateScope{   \
      [&]() -> ::costate::Expr<bool> { return __VA_ARGS__; }})
#define FOR(index_, ...)                                                       \
  COSTATE_BLOCK(::costate::detail::ForScope costateFor_##index_{__VA_ARGS__})  \
  COSTATE_BLOCK([[maybe_unused]] ::costate::Index index_ =                     \
                    costateFor_##index_.index())

#define BREAK ::costate::break_()
#define CONTINUE ::costate::continue_()
#define RETURN ::costate::return_()
