#pragma once
/// The smallest kernel that is found to fail.

#include "fuzz/Generator.h"
#include "fuzz/Session.h"

namespace costate::fuzz {

Case copyOf(const Case &original);

/// Removes and simplifies operations and values of `subject` as long as it
/// verifies and `fails` holds. With `keepValues`, no value is replaced by
/// another one.
Case shrink(Session &session, Case subject,
            llvm::function_ref<bool(const Case &)> fails,
            bool keepValues = false);

} // namespace costate::fuzz
