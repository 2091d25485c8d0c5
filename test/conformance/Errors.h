#pragma once
/// Expectations about errors.

#include <costate/costate.h>
#include <gtest/gtest.h>
#include <initializer_list>
#include <string>

namespace costate::test {

/// `NAME.cpp:LINE`, as messages name a place.
inline std::string here(const char *file, int line) {
  std::string path = file;
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(line);
}

/// Expects that `f` throws Error(`code`) with all `parts` in its text.
template <class F>
void expectError(ErrorCode code, std::initializer_list<std::string> parts,
                 F &&f) {
  try {
    f();
    ADD_FAILURE() << "no error";
  } catch (const Error &error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code))
        << error.what();
    for (const std::string &part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "`" << part << "` is not in: " << error.what();
  }
}

/// Whether the driver of a GPU assembles the kernels that `run` launches; some
/// give up on large ones, and the error says what helps.
template <class F> bool assembles(F &&run) {
  try {
    run();
  } catch (const Error &error) {
    if (std::string(error.what()).find("`Local` arrays smaller") ==
        std::string::npos)
      throw;
    return false;
  }
  return true;
}

} // namespace costate::test
