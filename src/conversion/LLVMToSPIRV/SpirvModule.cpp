#include "conversion/LLVMToSPIRV/SpirvModule.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

SpirvModule::SpirvModule(MLIRContext *context, const VulkanFeatures &features)
    : has(features) {
  OpBuilder builder(context);
  module =
      spv::ModuleOp::create(builder, builder.getUnknownLoc(),
                            spv::AddressingModel::PhysicalStorageBuffer64,
                            features.memoryModel ? spv::MemoryModel::Vulkan
                                                 : spv::MemoryModel::GLSL450);
  need(spv::Capability::Shader);
  need(spv::Capability::Int64);
  need(spv::Capability::PhysicalStorageBufferAddresses);
  need(spv::Extension::SPV_KHR_physical_storage_buffer);
  if (!features.memoryModel)
    return;
  need(spv::Capability::VulkanMemoryModel);
  need(spv::Capability::VulkanMemoryModelDeviceScope);
  need(spv::Extension::SPV_KHR_vulkan_memory_model);
}

OpBuilder SpirvModule::atEnd() {
  return OpBuilder::atBlockEnd(module->getBody());
}

void SpirvModule::need(spv::Capability capability) {
  capabilities.insert(capability);
}

void SpirvModule::need(spv::Extension extension) {
  extensions.insert(extension);
}

void SpirvModule::needType(Type type) {
  if (type.isF64())
    need(spv::Capability::Float64);
  else if (type.isF16())
    need(spv::Capability::Float16);
  else if (type.isInteger(16))
    need(spv::Capability::Int16);
  else if (type.isInteger(8))
    need(spv::Capability::Int8);
}

void SpirvModule::needStorage(Type type) {
  needType(type);
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 8) {
    need(spv::Capability::StorageBuffer8BitAccess);
    need(spv::Extension::SPV_KHR_8bit_storage);
  }
  if (bits == 16) {
    need(spv::Capability::StorageBuffer16BitAccess);
    need(spv::Extension::SPV_KHR_16bit_storage);
  }
}

spv::GlobalVariableOp SpirvModule::global(StringRef name, Type type,
                                          spv::StorageClass storage) {
  spv::GlobalVariableOp &variable = globals[name];
  if (!variable) {
    OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
    variable = spv::GlobalVariableOp::create(
        builder, builder.getUnknownLoc(),
        TypeAttr::get(spv::PointerType::get(type, storage)),
        builder.getStringAttr(name));
  }
  return variable;
}

spv::GlobalVariableOp SpirvModule::builtIn(StringRef name) {
  Type number = IntegerType::get(module->getContext(), 32);
  spv::GlobalVariableOp variable =
      global(name, VectorType::get({3}, number), spv::StorageClass::Input);
  variable.setBuiltIn(name);
  return variable;
}

spv::GlobalVariableOp SpirvModule::launch() {
  MLIRContext *context = module->getContext();
  spv::StructType::StructDecorationInfo block(spv::Decoration::Block,
                                              UnitAttr::get(context));
  Type address = IntegerType::get(context, 64);
  auto type =
      spv::StructType::get({address, address, address}, {0, 8, 16}, {}, block);
  return global("launch", type, spv::StorageClass::PushConstant);
}

spv::GlobalVariableOp SpirvModule::passes() {
  return global("passes", IntegerType::get(module->getContext(), 32),
                spv::StorageClass::Private);
}

uint64_t SpirvModule::placeTable(StringRef name, StringRef bytes) {
  constexpr size_t alignment = 16, readAfter = 8;
  auto [place, isNew] = tableStarts.try_emplace(name, tableBytes.size());
  if (isNew) {
    tableBytes += bytes;
    tableBytes.resize(llvm::alignTo(tableBytes.size() + readAfter, alignment));
  }
  return place->second;
}

spv::GlobalVariableOp SpirvModule::blockMemory() {
  auto type = spv::ArrayType::get(IntegerType::get(module->getContext(), 32),
                                  unknownLength);
  return global("block_memory", type, spv::StorageClass::Workgroup);
}

spv::SpecConstantOp SpirvModule::constant(StringRef name,
                                          SpirvConstant number) {
  OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
  auto made = spv::SpecConstantOp::create(builder, builder.getUnknownLoc(),
                                          builder.getStringAttr(name),
                                          builder.getI32IntegerAttr(1));
  made->setAttr("spec_id", builder.getI32IntegerAttr(number));
  return made;
}

spv::SpecConstantOp SpirvModule::blockThreads() {
  if (!threads)
    threads = constant("block_threads", BlockThreadsConstant);
  return threads;
}

/// What makes the bits of floats those of IEEE 754.
void SpirvModule::addModes(spv::FuncOp function) {
  OpBuilder builder = atEnd();
  auto add = [&](bool isThere, spv::ExecutionMode mode,
                 spv::Capability capability, int bits) {
    if (!isThere)
      return;
    need(capability);
    need(spv::Extension::SPV_KHR_float_controls);
    spv::ExecutionModeOp::create(builder, function.getLoc(), function, mode,
                                 {bits});
  };
  auto addAll = [&](bool preservesNan, bool keepsDenormals, bool roundsToEven,
                    int bits) {
    add(preservesNan, spv::ExecutionMode::SignedZeroInfNanPreserve,
        spv::Capability::SignedZeroInfNanPreserve, bits);
    add(keepsDenormals, spv::ExecutionMode::DenormPreserve,
        spv::Capability::DenormPreserve, bits);
    add(roundsToEven, spv::ExecutionMode::RoundingModeRTE,
        spv::Capability::RoundingModeRTE, bits);
  };
  addAll(has.nan32, has.denorm32, has.rte32, 32);
  if (capabilities.contains(spv::Capability::Float64))
    addAll(has.nan64, has.denorm64, has.rte64, 64);
  if (capabilities.contains(spv::Capability::Float16))
    addAll(has.nan16, has.denorm16, has.rte16, 16);
}

std::string SpirvModule::lacking() const {
  using enum spv::Capability;
  const struct {
    spv::Capability capability;
    bool isThere;
    const char *name;
  } features[] = {
      {Float64, has.f64, "floats of 64 bits"},
      {Float16, has.f16, "floats of 16 bits"},
      {Int16, has.i16, "integers of 16 bits"},
      {Int8, has.i8, "integers of 8 bits"},
      {StorageBuffer16BitAccess, has.storage16, "elements of 16 bits"},
      {StorageBuffer8BitAccess, has.storage8, "elements of 8 bits"},
      {Int64Atomics, has.i64Atomics, "atomic operations on 64 bits"}};
  for (const auto &feature : features)
    if (!feature.isThere && capabilities.contains(feature.capability))
      return feature.name;
  return "";
}

/// Modules have entry points, also that of a gradient with nothing to do.
void SpirvModule::addEmptyFunction() {
  OpBuilder builder = atEnd();
  auto function = spv::FuncOp::create(builder, builder.getUnknownLoc(), "empty",
                                      builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  spv::ReturnOp::create(builder, builder.getUnknownLoc());
  addEntryPoint(function);
}

OwningOpRef<spv::ModuleOp> SpirvModule::finish() {
  if (entries.empty())
    addEmptyFunction();
  (void)blockThreads();
  (void)constant("block_words", BlockWordsConstant);
  (void)builtIn("LocalInvocationId");
  SmallVector<Attribute> interface;
  for (auto &[name, variable] : globals)
    interface.push_back(FlatSymbolRefAttr::get(variable));
  for (spv::FuncOp function : entries) {
    OpBuilder builder = atEnd();
    spv::EntryPointOp::create(builder, function.getLoc(),
                              spv::ExecutionModel::GLCompute, function,
                              interface);
    spv::ExecutionModeOp::create(builder, function.getLoc(), function,
                                 spv::ExecutionMode::LocalSize, {1, 1, 1});
    addModes(function);
  }
  auto version =
      spv::VerCapExtAttr::get(spv::Version::V_1_5, capabilities.getArrayRef(),
                              extensions.getArrayRef(), module->getContext());
  (*module)->setAttr("vce_triple", version);
  return std::move(module);
}

} // namespace costate::conversion
