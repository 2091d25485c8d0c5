#pragma once
/// Code for NVIDIA GPUs.

namespace llvm {
class Module;
class Value;
} // namespace llvm

namespace costate::compiler {

/// The g of `g == 0`, f32 or f64, as a product with g is guarded; else null.
llvm::Value *guardingNumber(llvm::Value *condition);

/// Moves what looks whether a loaded number is 0 after the branches of its
/// block, but into no loop. Guards of products with an adjoint are hoisted in
/// front of a loop; a GPU issues in order, so one that stands there waits for
/// the load, and the loads of the first iteration with it.
void compareLate(llvm::Module &module);

} // namespace costate::compiler
