#include "compiler/targets/cuda/LateGuards.h"

#include "compiler/targets/cuda/NvidiaAssembly.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace costate::compiler {
namespace {

/// Blocks that would compare, with what uses the outcome there.
using Places = MapVector<BasicBlock *, SmallVector<Use *>>;

bool isGuardOfLoad(Instruction &instruction) {
  auto *load = dyn_cast_or_null<LoadInst>(guardingNumber(&instruction));
  return load && load->getParent() == instruction.getParent();
}

BasicBlock *blockOf(const Use &use) {
  auto *user = cast<Instruction>(use.getUser());
  auto *phi = dyn_cast<PHINode>(user);
  return phi ? phi->getIncomingBlock(use) : user->getParent();
}

/// `block`, or the one in front of the loops around it that `from` is not in;
/// null if there is none.
BasicBlock *outsideLoops(BasicBlock *block, const BasicBlock *from,
                         const LoopInfo &loops) {
  for (const Loop *loop = loops.getLoopFor(block);
       loop && !loop->contains(from); loop = loop->getParentLoop())
    block = loop->getLoopPreheader();
  return block;
}

/// None if the comparison stays.
Places placesOf(FCmpInst &compare, const LoopInfo &loops) {
  constexpr size_t most = 4;
  Places places;
  for (Use &use : compare.uses()) {
    BasicBlock *place = outsideLoops(blockOf(use), compare.getParent(), loops);
    if (!place || place == compare.getParent())
      return {};
    places[place].push_back(&use);
  }
  return places.size() > most ? Places() : places;
}

/// Not known to be the same as elsewhere: LLVM would hoist such a comparison.
Value *isZero(IRBuilder<> &builder, Value *x) {
  bool isDouble = x->getType()->isDoubleTy();
  return pureAssembly(builder, builder.getInt1Ty(), {x},
                      isDouble ? "setp.eq.f64 $0, $1, 0d0000000000000000;"
                               : "setp.eq.f32 $0, $1, 0f00000000;",
                      isDouble ? "=b,d" : "=b,f");
}

void moveLate(FCmpInst &compare, const LoopInfo &loops) {
  Places places = placesOf(compare, loops);
  for (auto &[place, uses] : places) {
    IRBuilder<> builder(&*place->getFirstInsertionPt());
    Value *copy = isZero(builder, compare.getOperand(0));
    for (Use *use : uses)
      use->set(copy);
  }
  if (!places.empty())
    compare.eraseFromParent();
}

void compareLate(Function &function) {
  SmallVector<FCmpInst *> found;
  for (Instruction &instruction : instructions(function))
    if (isGuardOfLoad(instruction))
      found.push_back(cast<FCmpInst>(&instruction));
  if (found.empty())
    return;
  DominatorTree dominators(function);
  LoopInfo loops(dominators);
  for (FCmpInst *compare : found)
    moveLate(*compare, loops);
}

} // namespace

Value *guardingNumber(Value *condition) {
  auto *compare = dyn_cast<FCmpInst>(condition);
  if (!compare || compare->getPredicate() != FCmpInst::FCMP_OEQ ||
      !match(compare->getOperand(1), PatternMatch::m_AnyZeroFP()))
    return nullptr;
  Value *g = compare->getOperand(0);
  bool isNumber = g->getType()->isFloatTy() || g->getType()->isDoubleTy();
  return isNumber ? g : nullptr;
}

void compareLate(Module &module) {
  for (Function &function : module)
    if (!function.isDeclaration())
      compareLate(function);
}

} // namespace costate::compiler
