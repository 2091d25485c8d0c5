#pragma once
/// Control flow in a kernel as blocks. No semicolon follows a block:
///
///     FOR (k, 0, n) {                  // or FOR (k, n - 1, -1, -1)
///       IF (x(k) < 0) { CONTINUE; }
///       ELIF (x(k) > 9) { BREAK; }
///       ELSE { s += x(k); }
///     }
///     WHILE (s > 1) { s *= 0.5; }
///     FOR (k, 0, n, checkpoints(100)) { s = f(s); }  // also of a WHILE
///
/// `break`, `continue` and `else` of C++ do not compile in these places. A
/// plain `return` does, but ends the C++ function while it is traced: what
/// follows is not recorded. Braces around a block are not optional where an
/// ELIF or ELSE follows.

#include "costate/control.h"
#include "costate/message.h"

#define COSTATE_BLOCK(...)                                                     \
  if (__VA_ARGS__; false) {                                                    \
  } else
#define COSTATE_JOIN(a, b) COSTATE_PASTE(a, b)
#define COSTATE_PASTE(a, b) a##b
#define COSTATE_SCOPE(Scope, ...)                                              \
  COSTATE_BLOCK([[maybe_unused]] ::costate::detail::Scope COSTATE_JOIN(        \
      costateScope, __LINE__){__VA_ARGS__})
#define COSTATE_CONDITION(...)                                                 \
  [&]() -> ::costate::Expr<bool> { return __VA_ARGS__; }

#define IF(...) COSTATE_SCOPE(IfScope, __VA_ARGS__)
#define ELIF(...) COSTATE_SCOPE(ElifScope, COSTATE_CONDITION(__VA_ARGS__))
#define ELSE COSTATE_SCOPE(ElseScope)
#define WHILE(...)                                                             \
  COSTATE_SCOPE(WhileScope, [&]() -> ::costate::detail::LoopCondition {        \
    return __VA_ARGS__;                                                        \
  })
#define FOR(index_, ...)                                                       \
  COSTATE_BLOCK(::costate::detail::ForScope costateFor_##index_{__VA_ARGS__})  \
  COSTATE_BLOCK([[maybe_unused]] ::costate::Index index_ =                     \
                    costateFor_##index_.index())

/// Like assert_.
#define ASSERT(...) ::costate::assert_(__VA_ARGS__)
#define BREAK ::costate::break_()
#define CONTINUE ::costate::continue_()
#define RETURN ::costate::return_()
