#include "compiler/FarValues.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace costate::compiler {

static constexpr unsigned longest = 4000; ///< instructions
static constexpr unsigned far = 200;      ///< as many between value and use

bool isLong(const Function &function) {
  return function.getInstructionCount() > longest;
}

namespace {

/// Where `use` needs its value.
Instruction *placeOf(const Use &use) {
  auto *user = cast<Instruction>(use.getUser());
  auto *phi = dyn_cast<PHINode>(user);
  return phi ? phi->getIncomingBlock(use)->getTerminator() : user;
}

class Spiller {
public:
  explicit Spiller(Function &function) : function(function) {
    for (Instruction &instruction : instructions(function))
      numbers[&instruction] = numbers.size();
  }

  void run() {
    SmallVector<Instruction *> all;
    for (Instruction &instruction : instructions(function))
      all.push_back(&instruction);
    MapVector<Constant *, SmallVector<Use *>> constants;
    for (Instruction *user : all)
      for (Use &use : user->operands())
        if (auto *constant = dyn_cast<ConstantFP>(use))
          constants[constant].push_back(&use);
    for (Instruction *value : all)
      if (canWait(*value))
        spill(*value);
    for (auto &[constant, uses] : constants)
      spill(*constant, uses);
  }

private:
  static bool canWait(const Instruction &value) {
    Type *type = value.getType();
    return !isa<AllocaInst>(value) && (type->isSized() && !type->isTokenTy()) &&
           !value.isTerminator();
  }

  bool isFar(const Instruction &from, const Use &use) const {
    unsigned a = numbers.lookup(&from), b = numbers.lookup(placeOf(use));
    return (a < b ? b - a : a - b) > far;
  }

  void spill(Instruction &value) {
    SmallVector<Use *> uses;
    for (Use &use : value.uses())
      if (isFar(value, use))
        uses.push_back(&use);
    if (!uses.empty())
      spill(value, *value.getInsertionPointAfterDef(), uses);
  }

  /// A block loads a constant of floats once, in front of its first use.
  void spill(Constant &value, ArrayRef<Use *> uses) {
    Instruction *first = placeOf(*uses.front());
    SmallVector<Use *> others;
    llvm::copy_if(uses, std::back_inserter(others),
                  [&](Use *use) { return isFar(*first, *use); });
    if (!others.empty())
      spill(value, function.getEntryBlock().begin(), others);
  }

  /// Stores `value` at `after`, and loads it for `uses`.
  void spill(Value &value, BasicBlock::iterator after, ArrayRef<Use *> uses) {
    BasicBlock &entry = function.getEntryBlock();
    IRBuilder<> b(&entry, after);
    b.SetInsertPoint(after);
    StoreInst *store = b.CreateStore(&value, PoisonValue::get(b.getPtrTy()));
    b.SetInsertPoint(&entry, entry.begin());
    Value *slot = b.CreateAlloca(value.getType());
    store->setOperand(1, slot);
    DenseMap<Instruction *, Value *> loads; // a phi may name a block twice
    for (Use *use : uses) {
      Value *&load = loads[placeOf(*use)];
      if (!load) {
        b.SetInsertPoint(placeOf(*use));
        load = b.CreateLoad(value.getType(), slot);
      }
      use->set(load);
    }
  }

  Function &function;
  DenseMap<const Instruction *, unsigned> numbers;
};

} // namespace

void spillFarValues(Function &function) { Spiller(function).run(); }

} // namespace costate::compiler
