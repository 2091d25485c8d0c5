#pragma once
/// COSTATE_EACH(macro, context, a, b, ...): macro(context, a) macro(context, b)

#define COSTATE_PARENS ()
#define COSTATE_EXPAND(...)                                                    \
  COSTATE_EXPAND3(COSTATE_EXPAND3(COSTATE_EXPAND3(__VA_ARGS__)))
#define COSTATE_EXPAND3(...)                                                   \
  COSTATE_EXPAND2(COSTATE_EXPAND2(COSTATE_EXPAND2(__VA_ARGS__)))
#define COSTATE_EXPAND2(...)                                                   \
  COSTATE_EXPAND1(COSTATE_EXPAND1(COSTATE_EXPAND1(__VA_ARGS__)))
#define COSTATE_EXPAND1(...) __VA_ARGS__

#define COSTATE_EACH(macro, context, ...)                                      \
  __VA_OPT__(COSTATE_EXPAND(COSTATE_EACH_NEXT(macro, context, __VA_ARGS__)))
#define COSTATE_EACH_NEXT(macro, context, first, ...)                          \
  macro(context, first) __VA_OPT__(                                            \
      COSTATE_EACH_AGAIN COSTATE_PARENS(macro, context, __VA_ARGS__))
#define COSTATE_EACH_AGAIN() COSTATE_EACH_NEXT
