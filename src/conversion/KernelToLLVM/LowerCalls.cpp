#include "conversion/KernelToLLVM/Outline.h"

#include "ir/Functions.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_LOWERCALLS
#include "conversion/KernelToLLVM/Passes.h.inc"

namespace {

/// One function, whose calls are still those of its old form.
class FunctionLowering {
public:
  FunctionLowering(ModuleOp module, func::FuncOp function, unsigned number)
      : module(module), old(function), number(number) {}

  LLVM::LLVMFuncOp run() {
    LLVM::LLVMFuncOp function = create();
    auto builder = ImplicitLocOpBuilder::atBlockBegin(
        old.getLoc(), &function.getFunctionBody().front());
    mapArguments(builder, function);
    Block &body = old.getBody().front();
    splice(builder, &body, body.begin(), std::prev(body.end()));
    finish(builder, body.getTerminator()->getOperands());
    return function;
  }

private:
  Type resultType() {
    TypeRange types = old.getResultTypes();
    if (types.empty())
      return LLVM::LLVMVoidType::get(module.getContext());
    if (types.size() == 1)
      return types.front();
    return LLVM::LLVMStructType::getLiteral(module.getContext(),
                                            llvm::to_vector(types));
  }

  LLVM::LLVMFuncOp create() {
    SmallVector<Type> params;
    auto pointer = LLVM::LLVMPointerType::get(module.getContext());
    auto i64 = IntegerType::get(module.getContext(), 64);
    for (Type type : old.getArgumentTypes()) {
      auto array = dyn_cast<ir::ArrayType>(type);
      params.push_back(array ? Type(pointer) : type);
      if (array)
        params.append(array.getRank(), i64);
    }
    auto builder = OpBuilder::atBlockEnd(module.getBody());
    auto function = LLVM::LLVMFuncOp::create(
        builder, old.getLoc(), ("function" + Twine(number)).str(),
        LLVM::LLVMFunctionType::get(resultType(), params),
        LLVM::Linkage::Internal);
    function.setNoUnwind(true);
    function.setNoInline(true);
    function.setMemoryEffectsAttr(effects());
    function.addEntryBlock(builder);
    return function;
  }

  /// Functions read the arrays that they get, and nothing else.
  LLVM::MemoryEffectsAttr effects() {
    auto none = LLVM::ModRefInfo::NoModRef;
    bool reads = llvm::any_of(old.getArgumentTypes(), [](Type type) {
      return isa<ir::ArrayType>(type);
    });
    return LLVM::MemoryEffectsAttr::get(module.getContext(), none,
                                        reads ? LLVM::ModRefInfo::Ref : none,
                                        none, none, none, none);
  }

  void mapArguments(ImplicitLocOpBuilder &builder, LLVM::LLVMFuncOp function) {
    ValueRange rest = function.getArguments();
    for (BlockArgument argument : old.getArguments()) {
      auto array = dyn_cast<ir::ArrayType>(argument.getType());
      unsigned size = array ? 1 + array.getRank() : 1;
      if (array)
        setAlias(function, rest.front());
      ValueRange own = rest.take_front(size);
      // No error names an array of a function.
      argument.replaceAllUsesWith(array ? castToArray(builder, own, array, -1)
                                        : own.front());
      rest = rest.drop_front(size);
    }
  }

  void setAlias(LLVM::LLVMFuncOp function, Value base) {
    unsigned number = cast<BlockArgument>(base).getArgNumber();
    for (StringRef name : {"llvm.noalias", "llvm.readonly"})
      function.setArgAttr(number, name, UnitAttr::get(module.getContext()));
  }

  void finish(ImplicitLocOpBuilder &builder, ValueRange results) {
    if (results.size() < 2) {
      LLVM::ReturnOp::create(builder, results);
      return;
    }
    Value all = LLVM::UndefOp::create(builder, resultType());
    for (auto [k, result] : llvm::enumerate(results))
      all = LLVM::InsertValueOp::create(builder, all, result,
                                        static_cast<int64_t>(k));
    LLVM::ReturnOp::create(builder, ValueRange(all));
  }

  ModuleOp module;
  func::FuncOp old;
  unsigned number;
};

void lowerCall(func::CallOp call, LLVM::LLVMFuncOp function) {
  ImplicitLocOpBuilder builder(call.getLoc(), call);
  Values arguments;
  for (Value operand : call.getOperands()) {
    if (!isa<ir::ArrayType>(operand.getType())) {
      arguments.push_back(operand);
      continue;
    }
    ArrayView view(operand);
    arguments.push_back(view.base);
    llvm::append_range(arguments, view.extents);
  }
  auto lowered = LLVM::CallOp::create(builder, function, arguments);
  for (auto [k, result] : llvm::enumerate(call.getResults()))
    result.replaceAllUsesWith(
        call.getNumResults() == 1
            ? lowered.getResult()
            : LLVM::ExtractValueOp::create(builder, lowered.getResult(),
                                           static_cast<int64_t>(k))
                  .getResult());
  call.erase();
}

struct LowerCalls : impl::LowerCallsBase<LowerCalls> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::DenseMap<Operation *, LLVM::LLVMFuncOp> lowered;
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    for (auto [number, function] : llvm::enumerate(functions))
      lowered[function] = FunctionLowering(module, function, number).run();
    module.walk([&](func::CallOp call) {
      lowerCall(call, lowered.lookup(ir::calleeOf(call)));
    });
    for (func::FuncOp function : functions)
      function.erase();
  }
};

} // namespace
} // namespace costate::conversion
