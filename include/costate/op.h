#pragma once
/// The pure operations of the kernel language.

#include <cstdint>

namespace costate::syntax {

/// Operands have one type unless said; integer operations are signed or
/// unsigned by that type. Semantics: docs/guide/language.md.
enum class Op : uint8_t {
#define COSTATE_OPERATION(Name, ...) Name,
#include "costate/detail/operations.def"
};

} // namespace costate::syntax
