#pragma once
/// For tests: LLVM IR of a device becomes SPIR-V that `spirv-val` accepts, as
/// text.

#include "compiler/targets/vulkan/Spirv.h"

#include "TemporaryFolder.h"
#include "compiler/DeviceIr.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace costate::compiler {

/// Of a device with everything.
inline VulkanFeatures all() {
  auto features = VulkanFeatures::everything();
  features.reconvergence = false; // younger than Debian's spirv-val
  features.endsLongLoops = true;
  return features;
}

/// As little as a device may have.
inline VulkanFeatures least() {
  VulkanFeatures features;
  features.subgroup = 8;
  features.f64 = features.i64Atomics = true;
  features.storage8 = features.storage16 = features.i8 = features.i16 = true;
  features.f16 = true;
#define COSTATE_VULKAN_ON(member, text) features.member = true;
  COSTATE_VULKAN_DEFECTS(COSTATE_VULKAN_ON)
#undef COSTATE_VULKAN_ON
  features.endsLongLoops = false;
  return features;
}

inline Result<std::string> emit(const std::string &ir,
                                const VulkanFeatures &features) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(
      "target datalayout = \"i64:64\"\n" + ir, error, context);
  if (!module)
    return Failure{ErrorCode::Internal, error.getMessage().str()};
  return emitSpirv(std::move(module), features);
}

inline std::string contentsOf(const std::filesystem::path &path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

inline bool hasTools() {
  static const bool found =
      std::system("spirv-val --version > /dev/null 2>&1") == 0 &&
      std::system("spirv-dis --version > /dev/null 2>&1") == 0;
  return found;
}

/// What spirv-dis prints of code that spirv-val accepts.
inline std::string checked(const std::string &ir,
                           const VulkanFeatures &features) {
  Result<std::string> code = emit(ir, features);
  EXPECT_TRUE(code.ok()) << code.error().text << "\n" << ir;
  if (!code)
    return "";
  test::TemporaryFolder folder;
  std::filesystem::path file = folder.path / "code.spv",
                        text = folder.path / "text";
  std::ofstream(file, std::ios::binary) << *code;
  auto run = [&](std::string command) {
    command += " " + file.string() + " > " + text.string() + " 2>&1";
    return std::system(command.c_str());
  };
  int status = run("spirv-val --target-env vulkan1.2");
  EXPECT_EQ(status, 0) << contentsOf(text) << "\n" << ir;
  run("spirv-dis --no-header --raw-id");
  return contentsOf(text);
}

class Spirv : public testing::Test {
protected:
  void SetUp() override {
    if (!hasTools())
      GTEST_SKIP() << "there is no spirv-val (Debian: spirv-tools)";
  }
  std::string text(const std::string &ir) {
    checked(ir, least());
    return checked(ir, all());
  }
};

} // namespace costate::compiler
