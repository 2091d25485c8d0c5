#pragma once
/// Helper of the tests.

#include "costate/error.h"

#include <gtest/gtest.h>
#include <initializer_list>
#include <string>

namespace costate::api {

/// Expects that `f` throws Error(`code`) with all `parts` in its text.
template <class F>
void expectError(ErrorCode code, std::initializer_list<const char *> parts,
                 F &&f) {
  try {
    f();
    ADD_FAILURE() << "no error";
  } catch (const Error &error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code))
        << error.what();
    for (const char *part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "`" << part << "` is not in: " << error.what();
  }
}

} // namespace costate::api
