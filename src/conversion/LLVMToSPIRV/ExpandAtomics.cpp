#include "base/VulkanChip.h"
#include "conversion/LLVMToSPIRV/Prepare.h"

#include "llvm/CodeGen/AtomicExpandUtils.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LowerAtomic.h"

using namespace llvm;

namespace costate::conversion {
namespace {

constexpr unsigned sharedSpace = 3, wordBits = 32;

bool isShared(const AtomicRMWInst &update) {
  return update.getPointerAddressSpace() == sharedSpace;
}

bool addsFloats(const AtomicRMWInst &update, const VulkanFeatures &features) {
  if (update.getType()->isFloatTy())
    return isShared(update) ? features.sharedFadd32 : features.fadd32;
  if (update.getType()->isDoubleTy())
    return isShared(update) ? features.sharedFadd64 : features.fadd64;
  return false;
}

/// Whether SPIR-V has the operation, for words.
bool isOperation(const AtomicRMWInst &update, const VulkanFeatures &features) {
  switch (update.getOperation()) {
  case AtomicRMWInst::Add:
  case AtomicRMWInst::Sub:
  case AtomicRMWInst::And:
  case AtomicRMWInst::Or:
  case AtomicRMWInst::Xor:
  case AtomicRMWInst::Xchg:
  case AtomicRMWInst::Max:
  case AtomicRMWInst::Min:
  case AtomicRMWInst::UMax:
  case AtomicRMWInst::UMin:
    return update.getType()->isIntegerTy();
  case AtomicRMWInst::FAdd:
    return addsFloats(update, features);
  default:
    return false;
  }
}

unsigned bitsOf(const Instruction &instruction, Type *type) {
  return instruction.getModule()->getDataLayout().getTypeSizeInBits(type);
}

void exchangeBits(AtomicRMWInst &update) {
  IRBuilder<> builder(&update);
  Type *bits = builder.getIntNTy(bitsOf(update, update.getType()));
  Value *value = builder.CreateBitCast(update.getValOperand(), bits);
  Value *old = builder.CreateAtomicRMW(
      AtomicRMWInst::Xchg, update.getPointerOperand(), value, update.getAlign(),
      update.getOrdering(), update.getSyncScopeID());
  update.replaceAllUsesWith(builder.CreateBitCast(old, update.getType()));
  update.eraseFromParent();
}

/// The word around a narrow element.
struct WordAround {
  Value *address, *shift, *mask;
};

WordAround wordAround(IRBuilder<> &builder, Value *pointer, unsigned bits) {
  Type *type = pointer->getType();
  Type *number = builder.getInt64Ty();
  Value *place = builder.CreatePtrToInt(pointer, number);
  Value *start = builder.CreateAnd(place, builder.getInt64(~uint64_t(3)));
  Value *bytes = builder.CreateAnd(place, builder.getInt64(3));
  Value *shift =
      builder.CreateTrunc(builder.CreateShl(bytes, 3), builder.getInt32Ty());
  Value *mask = builder.CreateShl(builder.getInt32((1u << bits) - 1), shift);
  return {builder.CreateIntToPtr(start, type), shift, mask};
}

Value *elementOf(IRBuilder<> &builder, const WordAround &around, Value *word,
                 Type *type, unsigned bits) {
  Value *low = builder.CreateLShr(word, around.shift);
  return builder.CreateBitCast(
      builder.CreateTrunc(low, builder.getIntNTy(bits)), type);
}

Value *withElement(IRBuilder<> &builder, const WordAround &around, Value *word,
                   Value *element, unsigned bits) {
  Value *number = builder.CreateZExt(
      builder.CreateBitCast(element, builder.getIntNTy(bits)),
      builder.getInt32Ty());
  Value *others = builder.CreateAnd(word, builder.CreateNot(around.mask));
  return builder.CreateOr(others, builder.CreateShl(number, around.shift));
}

/// Repeats, at `builder`, until nobody else has changed the word between, or
/// `update` gives none. Returns what was there.
template <class Update>
Value *exchangeLoop(Instruction &at, Value *address, Type *type,
                    const Update &update) {
  BasicBlock *before = at.getParent();
  BasicBlock *after = before->splitBasicBlock(&at);
  BasicBlock *loop =
      BasicBlock::Create(at.getContext(), "", at.getFunction(), after);
  before->getTerminator()->eraseFromParent();
  IRBuilder<> builder(before);
  Align align(bitsOf(at, type) / 8);
  LoadInst *first = builder.CreateAlignedLoad(type, address, align);
  first->setAtomic(AtomicOrdering::Monotonic);
  builder.CreateBr(loop);
  builder.SetInsertPoint(loop);
  PHINode *old = builder.CreatePHI(type, 2);
  old->addIncoming(first, before);
  Value *next = update(builder, old);
  Value *pair = builder.CreateAtomicCmpXchg(address, old, next, align,
                                            AtomicOrdering::Monotonic,
                                            AtomicOrdering::Monotonic);
  Value *seen = builder.CreateExtractValue(pair, 0);
  Value *isDone = builder.CreateICmpEQ(seen, old);
  old->addIncoming(seen, builder.GetInsertBlock());
  builder.CreateCondBr(isDone, after, loop);
  return old;
}

void expandNarrow(AtomicRMWInst &update) {
  unsigned bits = bitsOf(update, update.getType());
  IRBuilder<> builder(&update);
  WordAround around = wordAround(builder, update.getPointerOperand(), bits);
  auto next = [&](IRBuilder<> &b, Value *word) {
    Value *old = elementOf(b, around, word, update.getType(), bits);
    Value *value = buildAtomicRMWValue(update.getOperation(), b, old,
                                       update.getValOperand());
    return withElement(b, around, word, value, bits);
  };
  Value *word =
      exchangeLoop(update, around.address, builder.getInt32Ty(), next);
  builder.SetInsertPoint(&update);
  update.replaceAllUsesWith(
      elementOf(builder, around, word, update.getType(), bits));
  update.eraseFromParent();
}

void expandWide(AtomicRMWInst &update) {
  Type *type = update.getType();
  IRBuilder<> builder(&update);
  Type *word = builder.getIntNTy(bitsOf(update, type));
  auto next = [&](IRBuilder<> &b, Value *bits) {
    Value *value = buildAtomicRMWValue(update.getOperation(), b,
                                       b.CreateBitCast(bits, type),
                                       update.getValOperand());
    return b.CreateBitCast(value, word);
  };
  Value *old = exchangeLoop(update, update.getPointerOperand(), word, next);
  builder.SetInsertPoint(&update);
  update.replaceAllUsesWith(builder.CreateBitCast(old, type));
  update.eraseFromParent();
}

void expand(AtomicRMWInst &update, const VulkanFeatures &features) {
  if (bitsOf(update, update.getType()) < wordBits)
    return expandNarrow(update);
  if (isOperation(update, features))
    return;
  if (update.getOperation() == AtomicRMWInst::Xchg)
    return exchangeBits(update);
  expandWide(update);
}

/// Compares one element; changes of its neighbours are no failure.
void expandNarrow(AtomicCmpXchgInst &exchange) {
  Type *type = exchange.getCompareOperand()->getType();
  unsigned bits = bitsOf(exchange, type);
  IRBuilder<> builder(&exchange);
  WordAround around = wordAround(builder, exchange.getPointerOperand(), bits);
  auto next = [&](IRBuilder<> &b, Value *word) {
    Value *old = elementOf(b, around, word, type, bits);
    Value *isEqual = b.CreateICmpEQ(old, exchange.getCompareOperand());
    Value *value = b.CreateSelect(isEqual, exchange.getNewValOperand(), old);
    return withElement(b, around, word, value, bits);
  };
  Value *word =
      exchangeLoop(exchange, around.address, builder.getInt32Ty(), next);
  builder.SetInsertPoint(&exchange);
  Value *old = elementOf(builder, around, word, type, bits);
  Value *isEqual = builder.CreateICmpEQ(old, exchange.getCompareOperand());
  Value *pair = PoisonValue::get(exchange.getType());
  pair = builder.CreateInsertValue(pair, old, 0);
  pair = builder.CreateInsertValue(pair, isEqual, 1);
  exchange.replaceAllUsesWith(pair);
  exchange.eraseFromParent();
}

} // namespace

void expandAtomics(Module &module, const VulkanFeatures &features) {
  SmallVector<Instruction *> atomics;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (isa<AtomicRMWInst, AtomicCmpXchgInst>(instruction))
        atomics.push_back(&instruction);
  for (Instruction *atomic : atomics) {
    if (auto *update = dyn_cast<AtomicRMWInst>(atomic))
      expand(*update, features);
    else if (auto *exchange = cast<AtomicCmpXchgInst>(atomic);
             bitsOf(*exchange, exchange->getCompareOperand()->getType()) <
             wordBits)
      expandNarrow(*exchange);
  }
}

} // namespace costate::conversion
