#include "cache/Store.h"
#include "compiler/Compiler.h"

#include "TemporaryFolder.h"

#include <gtest/gtest.h>

namespace costate::compiler {
namespace {

constexpr const char *square = R"(
costate.kernel @square(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %v : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}
)";

class CachedProgram : public testing::Test {
protected:
  struct Outcome {
    uint64_t compiled, loaded, hash;
  };

  /// What a new program does when it is asked for `derivation`.
  Outcome outcome(const Derivation &derivation,
                  const std::string &text = square, Options options = {},
                  const std::string &file = "k.mlir") {
    uint64_t compiled = store->counts.compiled, loaded = store->counts.loaded;
    auto program = Program::parse(text, file, "", options, store);
    EXPECT_TRUE(program) << program.error().text;
    EXPECT_EQ((*program)->name(), "square");
    EXPECT_EQ((*program)->arguments().size(), 2u);
    auto code = (*program)->compile(derivation);
    EXPECT_TRUE(code) << code.error().text;
    if (!code)
      return {};
    EXPECT_TRUE(code->entry);
    EXPECT_EQ(code->isLoaded, store->counts.loaded > loaded);
    return {store->counts.compiled - compiled, store->counts.loaded - loaded,
            code->objectHash};
  }

  void forEachFile(auto change) {
    for (const auto &entry : std::filesystem::directory_iterator(folder.path))
      if (entry.path().extension() == ".code")
        change(entry.path());
  }

  static cache::Key keyIn(const std::filesystem::path &path) {
    std::string digits = path.stem().string();
    cache::Key key{};
    for (size_t k = 0; k < key.size(); ++k)
      key[k] =
          static_cast<uint8_t>(std::stoi(digits.substr(2 * k, 2), nullptr, 16));
    return key;
  }

  test::TemporaryFolder folder;
  std::shared_ptr<cache::Store> store =
      std::make_shared<cache::Store>(folder.path, 1 << 20);
  const Derivation gradient{Mode::Gradient, {true, true}};
};

TEST_F(CachedProgram, WhatWasCompiledIsLoaded) {
  for (const Derivation &derivation :
       {Derivation(Mode::Primal, {}), gradient,
        Derivation(Mode::Tangent, {true, true})}) {
    Outcome first = outcome(derivation), second = outcome(derivation);
    EXPECT_EQ(first.compiled, 1u);
    EXPECT_EQ(first.loaded, 0u);
    EXPECT_EQ(second.compiled, 0u);
    EXPECT_EQ(second.loaded, 1u);
    EXPECT_EQ(first.hash, second.hash);
  }
}

TEST_F(CachedProgram, LoadedFactsAreThoseOfTheCompiler) {
  auto facts = [&] {
    auto program = Program::parse(square, "k.mlir", "", {.debug = true}, store);
    return *(*program)->compile(gradient);
  };
  runtime::KernelCode made = facts(), loaded = facts();
  EXPECT_FALSE(made.isLoaded);
  EXPECT_TRUE(loaded.isLoaded);
  EXPECT_EQ(loaded.name, made.name);
  EXPECT_EQ(loaded.parameters, made.parameters);
  EXPECT_EQ(loaded.texts, made.texts);
  EXPECT_EQ(loaded.recordBytes, made.recordBytes);
  EXPECT_EQ(loaded.objectBytes, made.objectBytes);
  ASSERT_EQ(loaded.sites.size(), made.sites.size());
  for (size_t k = 0; k < made.sites.size(); ++k) {
    EXPECT_STREQ(loaded.sites[k].file, made.sites[k].file);
    EXPECT_EQ(loaded.sites[k].line, made.sites[k].line);
  }
}

TEST_F(CachedProgram, EverythingThatDecidesTheCodeCounts) {
  outcome(gradient);
  auto isNew = [&](const Derivation &derivation,
                   const std::string &text = square, Options options = {},
                   const std::string &file = "k.mlir") {
    return outcome(derivation, text, options, file).compiled == 1;
  };
  EXPECT_FALSE(isNew(gradient));
  EXPECT_TRUE(isNew(gradient, square + std::string(" ")));
  EXPECT_TRUE(isNew(gradient, square, {}, "other.mlir"));
  EXPECT_TRUE(isNew(gradient, square, {.debug = true}));
  EXPECT_TRUE(isNew(gradient, square, {.deterministic = true}));
  EXPECT_TRUE(isNew(gradient, square, {.fastMath = true}));
  EXPECT_TRUE(isNew(gradient, square, {.findNan = true}));
  EXPECT_TRUE(isNew(gradient, square, {.contract = false}));
  EXPECT_TRUE(isNew(Derivation(Mode::Gradient, {false, true})));
  EXPECT_TRUE(isNew(Derivation(Mode::Recording, {true, true})));
  Derivation changed = gradient;
  changed.target = "simt";
  EXPECT_TRUE(isNew(changed));
  changed = Derivation(Mode::Tangent, {true, true});
  EXPECT_TRUE(isNew(changed));
  changed.order = 2;
  EXPECT_TRUE(isNew(changed));
  changed.directions = 3;
  EXPECT_TRUE(isNew(changed));
}

TEST_F(CachedProgram, DeviceCodeIsLoadedWithItsFunctions) {
  Derivation simt = gradient;
  simt.target = "simt";
  outcome(simt);
  auto program = Program::parse(square, "k.mlir", "", {}, store);
  auto code = (*program)->compile(simt);
  ASSERT_TRUE(code && code->isLoaded);
  ASSERT_TRUE(code->device);
  ASSERT_FALSE(code->device->functions.empty());
  for (const auto &function : code->device->functions)
    EXPECT_TRUE(code->device->addresses.at(function.symbol));
  Derivation cuda = gradient;
  cuda.target = "sm_80";
  EXPECT_EQ(outcome(cuda).compiled, 1u);
  auto again = Program::parse(square, "k.mlir", "", {}, store);
  code = (*again)->compile(cuda);
  ASSERT_TRUE(code && code->isLoaded);
  EXPECT_NE(code->device->image.find(".target sm_80"), std::string::npos);
  EXPECT_NE(outcome(gradient).hash, 0u);
}

TEST_F(CachedProgram, DamagedFilesAreCompiledAgainAndReplaced) {
  Outcome first = outcome(gradient);
  forEachFile([](const std::filesystem::path &path) {
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  });
  Outcome again = outcome(gradient);
  EXPECT_EQ(again.compiled, 1u);
  EXPECT_EQ(again.hash, first.hash);
  EXPECT_EQ(outcome(gradient).loaded, 1u);
}

TEST_F(CachedProgram, WholeFilesWithOtherContentsAreCompiledAgain) {
  outcome(gradient);
  for (const std::string &content :
       {std::string(), std::string("something"), std::string(200, '\0'),
        std::string(200, '\xff')}) {
    forEachFile([&](const std::filesystem::path &path) {
      store->put(keyIn(path), content);
    });
    EXPECT_EQ(outcome(gradient).compiled, 1u);
    EXPECT_EQ(outcome(gradient).loaded, 1u);
  }
}

TEST_F(CachedProgram, TextsAreMadeFromSource) {
  outcome(gradient);
  auto program = Program::parse(square, "k.mlir", "", {}, store);
  auto text = (*program)->print(gradient, false);
  ASSERT_TRUE(text);
  auto plain = Program::parse(square, "k.mlir", "", {});
  EXPECT_EQ(*text, *(*plain)->print(gradient, false));
}

TEST_F(CachedProgram, ErrorsAreNotKept) {
  for (int k = 0; k < 2; ++k) {
    auto program = Program::parse("nothing", "k.mlir", "", {}, store);
    ASSERT_FALSE(program);
    EXPECT_EQ(program.error().code, ErrorCode::BadKernel);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

} // namespace
} // namespace costate::compiler
