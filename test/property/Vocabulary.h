#pragma once
/// Everything that a random kernel may be made of, in one place: what the
/// generator chooses from, and what a long run must have covered.

#include <string>
#include <vector>

namespace costate::property {

/// Which operands keep a function defined and its values small.
enum class Operands {
  Any,      ///< one
  Small,    ///< one between -1 and 1
  AboveOne, ///< one above 1
  Unit,     ///< one between -0.9 and 0.9
  Two,      ///< two
  Away,     ///< two, the second away from 0
  Power,    ///< a positive basis, a small exponent
  Three,    ///< fma
  Bounds,   ///< clamp
  Choice,   ///< select
};

struct Function {
  const char *head;
  Operands operands;
};

const std::vector<Function> &realFunctions();
const std::vector<Function> &integerFunctions();
/// Of two numbers; bools have the last two only.
const std::vector<std::string> &comparisons();

/// All dtypes, and those with arithmetic.
const std::vector<std::string> &types();
const std::vector<std::string> &numberTypes();
bool isReal(const std::string &type);
bool isUnsigned(const std::string &type);
/// Of less than 32 bits.
bool isNarrow(const std::string &type);
/// f32 and f16: derivatives by differences do not tell.
bool isSingle(const std::string &type);

/// What a run must cover, named as Coverage::note names it: "sin f64".
std::vector<std::string> everything();

} // namespace costate::property
