#include "conversion/LLVMToMetal/Emission.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace costate::conversion {
namespace {

TEST(MetalEmission, AnotherNameForAValueIsTheSameOfManyValues) {
  std::string code = "llvm.func @f(%a: !llvm.ptr, %x: i64) {\n";
  for (int k = 0; k < 200; ++k) {
    std::string to = "%p" + std::to_string(k);
    code += to + " = llvm.addrspacecast %a : !llvm.ptr to !llvm.ptr<1>\n";
    code += "llvm.store %x, " + to + " : i64, !llvm.ptr<1>\n";
  }
  mlir::MLIRContext context;
  context.loadDialect<mlir::LLVM::LLVMDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      code + "llvm.return\n}\n", &context);
  ASSERT_TRUE(module);
  SharedLayout shared;
  MetalText text(shared);
  auto function = *module->getOps<mlir::LLVM::LLVMFuncOp>().begin();
  ASSERT_TRUE(mlir::succeeded(emitFunction(text, function)));
  std::string made = text.finish(0);
  int stores = 0;
  std::string store = "  costate_store64(a0, a1);";
  for (size_t at = made.find(store); at != made.npos;
       at = made.find(store, at + 1))
    ++stores;
  EXPECT_EQ(stores, 200);
}

} // namespace
} // namespace costate::conversion
