#include "cache/Key.h"

#include "llvm/Support/SHA256.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace costate::cache {
namespace {

TEST(Key, IsTheHashThatOthersCompute) {
  EXPECT_EQ(textOf(keyOf("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Key, CodeIsToldByTheFileThatItComesFrom) {
  auto own = reinterpret_cast<const void *>(&textOf);
  auto libc = reinterpret_cast<const void *>(&getppid);
  auto identity = [](std::initializer_list<const void *> list) {
    return identityOf(std::span(list.begin(), list.size()));
  };
  EXPECT_FALSE(identity({own}).empty());
  EXPECT_NE(identity({own}), identity({libc}));
  EXPECT_NE(identity({own}), identity({own, libc}));
  EXPECT_EQ(identity({own}),
            identity({reinterpret_cast<const void *>(&keyOf)}));
}

TEST(Key, WhatIsNoCodeHasNoIdentity) {
  int local = 0;
  const void *address = &local;
  EXPECT_EQ(identityOf(std::span(&address, 1)), "");
}

} // namespace
} // namespace costate::cache
