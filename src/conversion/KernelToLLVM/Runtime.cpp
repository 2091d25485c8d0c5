#include "conversion/KernelToLLVM/Runtime.h"

#include "base/Message.h"
#include "ir/Source.h"

using namespace mlir;

namespace costate::conversion {

StringRef nameOf(Type element) {
  return element.isF16() ? "f16" : element.isF32() ? "f32" : "f64";
}

Value workerOf(Operation *op) {
  return op->getParentOfType<LLVM::LLVMFuncOp>().getArgument(1);
}

ArrayView::ArrayView(Value array) {
  auto cast = array.getDefiningOp<UnrealizedConversionCastOp>();
  assert(cast && "an array outside an outlined function");
  base = cast.getInputs().front();
  extents = cast.getInputs().drop_front();
  parameter = cast->getAttrOfType<IntegerAttr>(parameterAttr).getInt();
}

Value castToArray(ImplicitLocOpBuilder &builder, ValueRange parts, Type type,
                  int64_t parameter) {
  auto cast = UnrealizedConversionCastOp::create(builder, type, parts);
  cast->setAttr(parameterAttr, builder.getI64IntegerAttr(parameter));
  return cast.getResult(0);
}

Value rowMajor(ImplicitLocOpBuilder &builder, ValueRange indices,
               ValueRange extents) {
  if (indices.empty())
    return constant(builder, 0);
  Value linear = indices.front();
  for (auto [index, extent] :
       llvm::zip(indices.drop_front(), extents.drop_front())) {
    linear = arith::MulIOp::create(builder, linear, extent);
    linear = arith::AddIOp::create(builder, linear, index);
  }
  return linear;
}

Value constant(ImplicitLocOpBuilder &builder, int64_t value) {
  return arith::ConstantOp::create(builder, builder.getI64IntegerAttr(value));
}

Runtime::Runtime(ModuleOp module) : module(module) {
  MLIRContext *context = module.getContext();
  i32 = IntegerType::get(context, 32);
  i64 = IntegerType::get(context, 64);
  f64 = Float64Type::get(context);
  pointer = LLVM::LLVMPointerType::get(context);
  none = LLVM::LLVMVoidType::get(context);
  if (auto known = module->getAttrOfType<ArrayAttr>(sitesAttr))
    llvm::append_range(sites, known);
  if (auto known = module->getAttrOfType<ArrayAttr>(textsAttr))
    llvm::append_range(texts, known);
  if (auto known =
          module->getAttrOfType<DenseI64ArrayAttr>(watchedParametersAttr))
    llvm::append_range(watched, known.asArrayRef());
}

Runtime::~Runtime() {
  module->setAttr(sitesAttr, ArrayAttr::get(module.getContext(), sites));
  if (!texts.empty())
    module->setAttr(textsAttr, ArrayAttr::get(module.getContext(), texts));
  if (!watched.empty())
    module->setAttr(watchedParametersAttr,
                    DenseI64ArrayAttr::get(module.getContext(), watched));
}

int64_t Runtime::text(StringRef text) {
  Attribute wanted = StringAttr::get(module.getContext(), text);
  auto known = llvm::find(texts, wanted);
  if (known == texts.end()) {
    texts.push_back(wanted);
    return texts.size() - 1;
  }
  return known - texts.begin();
}

int64_t Runtime::site(Location loc) {
  FileLineColLoc place = ir::sourceOf(loc);
  if (!place)
    return -1;
  auto known = llvm::find(sites, LocationAttr(place));
  if (known == sites.end()) {
    sites.push_back(place);
    return sites.size() - 1;
  }
  return known - sites.begin();
}

int64_t Runtime::site(Location loc, int64_t variant) {
  int64_t first = site(loc);
  if (first < 0 || variant == 0)
    return first;
  auto [known, isNew] =
      variants.try_emplace({first, variant}, int64_t(sites.size()));
  if (isNew)
    sites.push_back(sites[first]);
  return known->second;
}

LLVM::LLVMFuncOp Runtime::declare(StringRef plainName, Type result,
                                  TypeRange params, Traits traits) {
  std::string name = plainName.str();
  if (module->hasAttr(deviceAttr)) {
    name.insert(StringRef("costate_").size(), "device_");
    if (traits.noReturn)
      module->setAttr(mayFailAttr, UnitAttr::get(module.getContext()));
  }
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  auto builder =
      ImplicitLocOpBuilder::atBlockBegin(module.getLoc(), module.getBody());
  auto type = LLVM::LLVMFunctionType::get(result, llvm::to_vector(params));
  auto function = LLVM::LLVMFuncOp::create(builder, name, type);
  function.setNoUnwind(true);
  function.setConvergent(traits.collective);
  SmallVector<Attribute> attributes;
  if (traits.cold)
    attributes.push_back(builder.getStringAttr("cold"));
  if (traits.noReturn)
    attributes.push_back(builder.getStringAttr("noreturn"));
  if (!attributes.empty())
    function.setPassthroughAttr(builder.getArrayAttr(attributes));
  // No runtime function keeps the pointer to the worker.
  if (traits.cold || traits.readsOnly)
    function.setArgAttr(0, LLVM::LLVMDialect::getNoCaptureAttrName(),
                        builder.getUnitAttr());
  return function;
}

void Runtime::callRange(ImplicitLocOpBuilder &builder, ValueRange args) {
  Type params[] = {pointer, pointer, pointer, i64, pointer,
                   i64,     i64,     i64,     i64, i64};
  LLVM::CallOp::create(builder, declare("costate_range", none, params, {}),
                       args);
}

void Runtime::callCopied(ImplicitLocOpBuilder &builder, Value launch,
                         Value arrays, int64_t count) {
  auto function = declare("costate_copies", none, {pointer, pointer, i64}, {});
  Value number = constant(builder, count);
  LLVM::CallOp::create(builder, function, ValueRange{launch, arrays, number});
}

void Runtime::callBeginRange(ImplicitLocOpBuilder &builder, Value launch,
                             Value extents, int64_t rank) {
  auto function =
      declare("costate_begin_range", none, {pointer, pointer, i64}, {});
  Value count = constant(builder, rank);
  LLVM::CallOp::create(builder, function, ValueRange{launch, extents, count});
}

void Runtime::callDeviceRun(ImplicitLocOpBuilder &builder, ValueRange args) {
  Type params[] = {pointer, i64, pointer, i64};
  LLVM::CallOp::create(builder, declare("costate_run", none, params, {}), args);
}

Value Runtime::callDeviceRead(ImplicitLocOpBuilder &builder, ValueRange args) {
  auto function = declare("costate_read", i64, {pointer, i64}, {});
  return LLVM::CallOp::create(builder, function, args).getResult();
}

void Runtime::callCopy(ImplicitLocOpBuilder &builder, ValueRange args) {
  Type params[] = {pointer, pointer, pointer, i64};
  LLVM::CallOp::create(builder, declare("costate_copy", none, params, {}),
                       args);
}

/// What a function returns, as an i1.
static Value callForFlag(ImplicitLocOpBuilder &builder,
                         LLVM::LLVMFuncOp function, ValueRange args) {
  Value flag = LLVM::CallOp::create(builder, function, args).getResult();
  Value zero = arith::ConstantOp::create(builder, builder.getI32IntegerAttr(0));
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::ne, flag, zero);
}

Value Runtime::callDryRun(ImplicitLocOpBuilder &builder, Value worker) {
  auto function = declare("costate_dry_run", i32, pointer, {.readsOnly = true});
  return callForFlag(builder, function, worker);
}

Value Runtime::callLengthsDiffer(ImplicitLocOpBuilder &builder,
                                 ValueRange args) {
  Type params[] = {pointer, i64, i64, i64};
  auto function = declare("costate_lengths_differ", i32, params, {});
  return callForFlag(builder, function, args);
}

void Runtime::callOrderByLength(ImplicitLocOpBuilder &builder,
                                ValueRange args) {
  Type params[] = {pointer, i64, pointer};
  auto function = declare("costate_order_by_length", none, params, {});
  LLVM::CallOp::create(builder, function, args);
}

void Runtime::callTapeGrow(ImplicitLocOpBuilder &builder, Value worker,
                           int64_t bytes) {
  auto function =
      declare("costate_tape_grow", none, {pointer, i64, i64}, {.cold = true});
  Value size = constant(builder, bytes);
  Value place = constant(builder, site(builder.getLoc()));
  LLVM::CallOp::create(builder, function, ValueRange{worker, size, place});
}

void Runtime::callStepZero(ImplicitLocOpBuilder &builder, Value worker) {
  auto function = declare("costate_step_zero", none, {pointer, i64},
                          {.cold = true, .noReturn = true});
  Value place = constant(builder, site(builder.getLoc()));
  LLVM::CallOp::create(builder, function, ValueRange{worker, place});
}

void Runtime::callIndexError(ImplicitLocOpBuilder &builder, Value worker,
                             int64_t parameter, int64_t dim, Value index,
                             Value extent) {
  Type params[] = {pointer, i64, i64, i64, i64, i64};
  auto function = declare("costate_index_error", none, params,
                          {.cold = true, .noReturn = true});
  Value place = constant(builder, site(builder.getLoc()));
  Value number = constant(builder, parameter);
  Value dimension = constant(builder, dim);
  LLVM::CallOp::create(
      builder, function,
      ValueRange{worker, place, number, dimension, index, extent});
}

void Runtime::callUse(ImplicitLocOpBuilder &builder, Value worker,
                      int64_t parameter, Value element, ElementUse use,
                      int64_t storedValue) {
  if (!llvm::is_contained(watched, parameter))
    watched.push_back(parameter);
  Type params[] = {pointer, i64, i64, i64, i64};
  auto function = declare("costate_use", none, params, {});
  Value place = constant(builder, site(builder.getLoc(), storedValue));
  Value number = constant(builder, parameter);
  Value kind = constant(builder, static_cast<int64_t>(use));
  LLVM::CallOp::create(builder, function,
                       ValueRange{worker, place, number, element, kind});
}

void Runtime::callNotFinite(ImplicitLocOpBuilder &builder, Value worker,
                            StringRef text, ValueRange numbers) {
  Type params[] = {pointer, i64, i64, i64, f64, f64, f64, f64};
  auto function = declare("costate_not_finite", none, params,
                          {.cold = true, .noReturn = true});
  Value place = constant(builder, site(builder.getLoc()));
  Value words = constant(builder, this->text(text));
  Value count = constant(builder, numbers.size());
  SmallVector<Value> args = {worker, place, words, count};
  llvm::append_range(args, numbers);
  while (args.size() < std::size(params))
    args.push_back(numbers.back());
  LLVM::CallOp::create(builder, function, args);
}

void Runtime::callMessage(ImplicitLocOpBuilder &builder, StringRef name,
                          Traits traits, Value worker, StringRef text,
                          ValueRange words, size_t most) {
  SmallVector<Type> params = {pointer, i64, i64, i64};
  params.append(most, i64);
  auto function = declare(name, none, params, traits);
  Value place = constant(builder, site(builder.getLoc()));
  Value number = constant(builder, this->text(text));
  Value count = constant(builder, words.size());
  SmallVector<Value> args = {worker, place, number, count};
  llvm::append_range(args, words);
  while (args.size() < params.size())
    args.push_back(count);
  LLVM::CallOp::create(builder, function, args);
}

void Runtime::callAssertFailed(ImplicitLocOpBuilder &builder, Value worker,
                               StringRef text, ValueRange words, bool refuses) {
  callMessage(builder, refuses ? "costate_refused" : "costate_assert_failed",
              {.cold = true, .noReturn = true}, worker, text, words,
              mostAsserted);
}

void Runtime::callPrint(ImplicitLocOpBuilder &builder, Value worker,
                        StringRef text, ValueRange words) {
  if (module->hasAttr(deviceAttr))
    module->setAttr(printsAttr, UnitAttr::get(module.getContext()));
  callMessage(builder, "costate_print", {.cold = true}, worker, text, words,
              mostPrinted);
}

void Runtime::callOfElement(ImplicitLocOpBuilder &builder, StringRef name,
                            Traits traits, Value worker, StringRef text,
                            int64_t parameter, Value element,
                            ValueRange numbers) {
  SmallVector<Type> params = {pointer, i64, i64, i64, i64};
  params.append(numbers.size(), f64);
  auto function = declare(name, none, params, traits);
  Value place = constant(builder, site(builder.getLoc()));
  Value words = constant(builder, this->text(text));
  Value number = constant(builder, parameter);
  SmallVector<Value> args = {worker, place, words, number, element};
  llvm::append_range(args, numbers);
  LLVM::CallOp::create(builder, function, args);
}

void Runtime::callElementNotFinite(ImplicitLocOpBuilder &builder, Value worker,
                                   StringRef text, int64_t parameter,
                                   Value element, Value value) {
  callOfElement(builder, "costate_element_not_finite",
                {.cold = true, .noReturn = true}, worker, text, parameter,
                element, value);
}

void Runtime::callCheckSum(ImplicitLocOpBuilder &builder, Value worker,
                           StringRef text, int64_t parameter, Value element,
                           Value added, StringRef type) {
  callOfElement(builder, ("costate_check_sum_" + type).str(), {}, worker, text,
                parameter, element, added);
}

void Runtime::callSumNotFinite(ImplicitLocOpBuilder &builder, Value worker,
                               StringRef text, int64_t parameter, Value element,
                               ValueRange numbers) {
  callOfElement(builder, "costate_sum_not_finite",
                {.cold = true, .noReturn = true}, worker, text, parameter,
                element, numbers);
}

void Runtime::callAddUp(ImplicitLocOpBuilder &builder, ValueRange args) {
  Type params[] = {pointer, i64, i64, i64, pointer, i64, i64, f64};
  auto function = declare("costate_add_up", none, params, {.collective = true});
  LLVM::CallOp::create(builder, function, args);
}

void Runtime::callAddUpPair(ImplicitLocOpBuilder &builder, ValueRange args) {
  Type params[] = {pointer, i64, i64, i64, pointer, f64, f64};
  auto function =
      declare("costate_add_up_pair", none, params, {.collective = true});
  LLVM::CallOp::create(builder, function, args);
}

Value Runtime::callBlockSum(ImplicitLocOpBuilder &builder, ValueRange args) {
  Type params[] = {i64, pointer, i64, f64};
  auto function =
      declare("costate_block_sum", f64, params, {.collective = true});
  return LLVM::CallOp::create(builder, function, args).getResult();
}

Value Runtime::callFinishSums(ImplicitLocOpBuilder &builder, ValueRange args) {
  Type params[] = {pointer, i64, pointer, i64, i64, pointer, i64, i64, pointer};
  auto function =
      declare("costate_finish_sums", i64, params, {.collective = true});
  Value last = LLVM::CallOp::create(builder, function, args).getResult();
  return arith::TruncIOp::create(builder, builder.getI1Type(), last);
}

Value Runtime::callTape(ImplicitLocOpBuilder &builder, StringRef name,
                        bool hasResult, ValueRange args) {
  return callTape(builder, name, hasResult ? i64 : Type(), args);
}

Value Runtime::callTape(ImplicitLocOpBuilder &builder, StringRef name,
                        Type result, ValueRange args) {
  auto function =
      declare(("costate_tape_" + name).str(), result ? result : none,
              TypeRange(args), {.collective = !result || name == "next"});
  auto call = LLVM::CallOp::create(builder, function, args);
  return result ? call.getResult() : Value();
}

Value Runtime::callSort(ImplicitLocOpBuilder &builder, StringRef name,
                        bool hasResult, ValueRange args) {
  auto function = declare(
      ("costate_sort_" + name).str(), hasResult ? i64 : none, TypeRange(args),
      {.collective = name != "work_item" && name != "rounds"});
  auto call = LLVM::CallOp::create(builder, function, args);
  return hasResult ? call.getResult() : Value();
}

Value Runtime::callWarpMax(ImplicitLocOpBuilder &builder, Value value) {
  auto function = declare("costate_warp_max", i64, i64, {.collective = true});
  return LLVM::CallOp::create(builder, function, value).getResult();
}

void Runtime::declareAddLater() {
  MLIRContext *context = module.getContext();
  Type f32 = Float32Type::get(context), f64 = Float64Type::get(context);
  declare("costate_add_later_f32", none, {pointer, pointer, f32}, {});
  declare("costate_add_later_f64", none, {pointer, pointer, f64}, {});
  declare("costate_add_later_f16", none, {pointer, pointer, f32}, {});
}

void Runtime::declareAddCommon() {
  MLIRContext *context = module.getContext();
  Type f32 = Float32Type::get(context), f64 = Float64Type::get(context);
  declare("costate_add_common_f32", none, {pointer, f32}, {.collective = true});
  declare("costate_add_common_f64", none, {pointer, f64}, {.collective = true});
  declare("costate_add_in_block_f32", none, {pointer, f32, i64},
          {.collective = true});
  declare("costate_add_in_block_f64", none, {pointer, f64, i64},
          {.collective = true});
}

void Runtime::callBeginInBlock(ImplicitLocOpBuilder &builder) {
  auto function =
      declare("costate_begin_in_block", none, {}, {.collective = true});
  LLVM::CallOp::create(builder, function, ValueRange());
}

void Runtime::callEndInBlock(ImplicitLocOpBuilder &builder) {
  auto function =
      declare("costate_end_in_block", none, {}, {.collective = true});
  LLVM::CallOp::create(builder, function, ValueRange());
}

} // namespace costate::conversion
