#pragma once
/// The body of a row, written once more for the lanes of a vector.

#include "conversion/KernelToLLVM/Outline.h"
#include "conversion/Lanes/Interleaved.h"
#include "conversion/Lanes/LaneBuilder.h"
#include "conversion/Lanes/Nearby.h"
#include "conversion/Lanes/TapeOrder.h"
#include "ir/Kernel.h"
#include "ir/Tape.h"

namespace costate::conversion {

/// A place of memory for each lane: vectors of addresses, or neighbours from
/// one address on.
struct LanePlaces {
  mlir::Type element; ///< of the array
  mlir::Value first;  ///< null: they are no neighbours
  mlir::Value each;   ///< null: they are neighbours
};

class LaneBody {
public:
  /// Within `function`.
  LaneBody(LaneBuilder &builder, const Shapes &shapes, const TapeOrder &order,
           const InterleavedAccesses &interleaved, const NearbyLoads &nearby,
           mlir::LLVM::LLVMFuncOp function)
      : b(builder), shapes(shapes), order(order), interleaved(interleaved),
        nearby(nearby), function(function) {}

  /// What a value of the row is here; of uniform ones `scalar`.
  void map(mlir::Value value, mlir::Value scalar, mlir::Value vector);
  mlir::Value vector(mlir::Value value);

  /// Emits the operations of `block` but for its terminator. `mask`: the lanes
  /// that are active, null for all.
  void emit(mlir::Block &block, mlir::Value mask);
  /// `op` is not to be emitted.
  void leaveOut(mlir::Operation *op) { leftOut.insert(op); }

private:
  void emit(mlir::Operation *op);
  void emitAccess(mlir::Operation *op);
  void emitScalar(mlir::Operation *op);
  void emitWide(mlir::Operation *op);
  void emitIndex(mlir::Operation *op);
  void emitTripCount(ir::TripCountOp op);
  void emitPush(tape::PushOp op);
  void emitPop(tape::PopOp op);

  // Control.cpp
  void emitIf(mlir::scf::IfOp op);
  void emitUniformIf(mlir::scf::IfOp op);
  /// Whether a side of a branch may run in lanes that do not take it, and is
  /// short.
  bool runsAnyway(mlir::Block &block) const;
  bool runsForAll(mlir::scf::IfOp op) const;
  Values emitSide(mlir::Region &region, mlir::Value taking, mlir::Value mask);
  void emitFor(mlir::scf::ForOp op);
  void emitUniformFor(mlir::scf::ForOp op);
  Values emitTogether(mlir::scf::ForOp op, mlir::Value end,
                      mlir::ValueRange inits);
  void emitPartingFor(mlir::scf::ForOp op);
  void emitWhile(mlir::scf::WhileOp op);
  void emitUniformWhile(mlir::scf::WhileOp op);
  void emitPartingWhile(mlir::scf::WhileOp op);
  mlir::Value orZero(mlir::Value here, mlir::Value value);
  /// What a region hands on, in the form that `like`, a value of the row, has.
  mlir::Value handOn(mlir::Value value, mlir::Value like);
  Values handOn(mlir::ValueRange values, mlir::ValueRange like);
  void take(mlir::ValueRange values, mlir::ValueRange here);
  /// The types that values of the row have here.
  llvm::SmallVector<mlir::Type> formsOf(mlir::ValueRange values) const;

  // Memory.cpp
  LanePlaces places(mlir::Operation *op);
  LanePlaces localPlaces(mlir::Operation *op);
  LanePlaces neighbours(mlir::Type element, mlir::Value base,
                        mlir::Value first);
  LanePlaces scattered(mlir::Type element, mlir::Value base,
                       mlir::Value numbers);
  mlir::Value load(const LanePlaces &places);
  bool takesEach();
  mlir::Value loadEach(const LanePlaces &places);
  mlir::Value loadEach(mlir::Type element,
                       llvm::function_ref<mlir::Value(unsigned lane)> placeOf);
  void emitNearby(ir::LoadOp load, unsigned group);
  mlir::ValueRange numbersOf(ir::LoadOp load, unsigned group);
  mlir::Value anywhere();
  void store(const LanePlaces &places, mlir::Value value);
  mlir::Value linear(mlir::ValueRange indices, mlir::ValueRange extents,
                     bool ofAllLanes);
  mlir::Value rowMajor(llvm::ArrayRef<mlir::Value> indices,
                       mlir::ValueRange extents);
  void emitLoad(mlir::Operation *op);
  void emitStore(mlir::Operation *op);
  void emitExclusive(mlir::Operation *op);
  /// What an exclusive addition adds.
  mlir::Value addend(mlir::Operation *op);
  mlir::Value added(mlir::Value old, mlir::Value value);
  bool emitSharedAdd(mlir::Operation *op);
  void emitLocal(ir::LocalOp op);
  void emitClear(ir::LocalClearOp op);
  void clear(mlir::Value memory, ir::LocalType type);

  // Components.cpp
  void emitInterleaved(const Interleaved &group);
  mlir::Value firstPlace(const Interleaved &group);
  Values emitTogether(const Interleaved &group);

  // EachLane.cpp
  void emitEachLane(mlir::Operation *op);
  void emitAssert(ir::AssertOp op);

  mlir::Value scalar(mlir::Value value) const;
  bool isUniform(mlir::Value value) const { return shapes.isUniform(value); }
  mlir::Value mask() const { return active; }

  /// Sets the active lanes while it lives.
  class Masked {
  public:
    Masked(LaneBody &body, mlir::Value mask) : body(body), saved(body.active) {
      body.active = mask;
    }
    ~Masked() { body.active = saved; }

  private:
    LaneBody &body;
    mlir::Value saved;
  };

  LaneBuilder &b;
  const Shapes &shapes;
  const TapeOrder &order;
  const InterleavedAccesses &interleaved;
  const NearbyLoads &nearby;
  mlir::LLVM::LLVMFuncOp function;
  mlir::Value active;
  mlir::Value unread;       ///< memory; null: none yet
  mlir::Value adding;       ///< active lanes that add more than 0; null: all
  bool isRare = false;      ///< what is emitted runs for few arrays
  unsigned loads = 0;       ///< one by one, so far
  unsigned nestedSides = 0; ///< of branches, around what is emitted
  /// What the loads of a group count from: a number for each lane.
  struct Numbers {
    mlir::Block *block = nullptr; ///< where they are known, and inside
    mlir::Value mask;
    Values each;
  };
  llvm::DenseMap<unsigned, Numbers> numbers; ///< by group
  llvm::SmallPtrSet<mlir::Operation *, 4> leftOut;
  llvm::DenseMap<mlir::Value, mlir::Value> scalars, vectors;
};

/// Whether `op`, without regions, works on each element of a vector as on a
/// scalar.
bool isElementwise(mlir::Operation *op);
/// Whether `op` adds to an element what all lanes have, in one sum.
bool addsLanesUp(mlir::Operation *op, const Shapes &shapes);
/// Whether `op` is done lane by lane.
bool isForEachLane(mlir::Operation *op);
/// An update that no other work item makes on the element.
bool isExclusive(mlir::Operation *op);

} // namespace costate::conversion
