#pragma once
/// What outlined functions know of the runtime: its functions, the worker, the
/// table of source places, and arrays as base address and extents.

#include "base/DeviceTape.h"
#include "base/ElementUse.h"
#include "conversion/KernelToLLVM/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::conversion {

inline constexpr llvm::StringLiteral sitesAttr = "costate.sites";
inline constexpr llvm::StringLiteral textsAttr = "costate.texts";
inline constexpr llvm::StringLiteral parameterAttr = "costate.parameter";
inline constexpr llvm::StringLiteral watchedParametersAttr =
    "costate.watched_parameters";

/// On a module whose code is for a device and the host that drives it: the
/// functions of the runtime are called `costate_device_...`.
inline constexpr llvm::StringLiteral deviceAttr = "costate.device";
/// On such a module: threads may report errors.
inline constexpr llvm::StringLiteral mayFailAttr = "costate.may_fail";
/// On a module of device code that prints.
inline constexpr llvm::StringLiteral printsAttr = "costate.prints";
/// On a module whose host code waits for values that a GPU computes.
inline constexpr llvm::StringLiteral readsBackAttr = "costate.reads_back";
/// On functions of a device: how many tapes are interleaved, and whether the
/// tape is only measured.
inline constexpr llvm::StringLiteral lanesAttr = "costate.lanes";
inline constexpr llvm::StringLiteral measuresAttr = "costate.measures";

/// On the loop over the work items of a row; on the function around it: how
/// many of them are lanes of a vector, or why none are.
inline constexpr llvm::StringLiteral rowAttr = "costate.row";
inline constexpr llvm::StringLiteral vectorLanesAttr = "costate.vector_lanes";
inline constexpr llvm::StringLiteral obstacleAttr = "costate.obstacle";
/// On such a function: its lanes may come in the order of their lengths.
inline constexpr llvm::StringLiteral orderedLanesAttr = "costate.ordered_lanes";
/// On such a function: which lines add how to what work items share.
inline constexpr llvm::StringLiteral additionsAttr = "costate.additions";
/// On a function that runs a chunk: the number of the place of its range.
inline constexpr llvm::StringLiteral rangeSiteAttr = "costate.range_site";

/// On an `atomic_add` that is a sum of its range (`mark-reductions`): the
/// number of its element within the range.
inline constexpr llvm::StringLiteral reductionAttr = "costate.reduction";
/// On an update of an integer that a thread makes in a register
/// (`mark-reductions`): the number of its element within the range.
inline constexpr llvm::StringLiteral accumulatorAttr = "costate.accumulator";
/// On a range: results of it are added to memory (`sum-in-ranges`).
inline constexpr llvm::StringLiteral addsAttr = "costate.adds";
/// On an `atomic_add`: lanes of a warp likely add to the same element.
inline constexpr llvm::StringLiteral commonAttr = "costate.common";
/// On such an addition to an array that its range does nothing else with.
inline constexpr llvm::StringLiteral inBlockAttr = "costate.in_block";

/// On an `atomic_add` of a range: only work items with the same first index
/// come to its element.
inline constexpr llvm::StringLiteral slabAttr = "costate.slab";
/// On an `atomic_add` of a range: the number of its array among those of which
/// threads may have copies.
inline constexpr llvm::StringLiteral copyAttr = "costate.copy";
/// Of a branch: where it is not taken, its additions would add 0. Of an
/// `atomic_add`: a GPU leaves it out if it would add 0.
inline constexpr llvm::StringLiteral skipsZerosAttr = "costate.skips_zeros";
/// On a function whose code is that of three loops (`split-rows`).
inline constexpr llvm::StringLiteral threeLoopsAttr = "costate-three-loops";

/// The words of a worker (see code/KernelCode.h): top of its tape, end of
/// the memory that it has, base, and the work item that it runs. On the CPU,
/// whether it is the only one, and the only one in the slabs of its range,
/// where its copies of arrays are, and how long its tape may become.
inline constexpr int64_t tapeEndSlot = 1, tapeBaseSlot = 2, workItemSlot = 3,
                         aloneSlot = 4, slabSlot = 5, copySlot = 6,
                         budgetSlot = 7;
/// The words of a place of a copy: its base, and whether nobody else adds
/// there.
inline constexpr int64_t copyWords = 2;
/// Devices only: the lane of the thread, and the cell for errors.
inline constexpr int64_t laneSlot = 4, errorSlot = 5, workerSlots = 6;
/// Where work items run in tiles (base/DeviceTape.h): rows of the tape, whether
/// the lane has a work item, and whether rows are scarce.
inline constexpr int64_t rowsSlot = 6, activeSlot = 7, lowMemorySlot = 8,
                         sufficientSlot = 9;
inline constexpr int64_t tileWorkerSlots = sizeof(TapeWorker) / 8;
static_assert(offsetof(TapeWorker, base) == 8 * tapeBaseSlot &&
              offsetof(TapeWorker, lane) == 8 * laneSlot &&
              offsetof(TapeWorker, rows) == 8 * rowsSlot &&
              offsetof(TapeWorker, active) == 8 * activeSlot &&
              offsetof(TapeWorker, lowMemory) == 8 * lowMemorySlot &&
              offsetof(TapeWorker, sufficient) == 8 * sufficientSlot);

/// Of a float: f16, f32 or f64.
llvm::StringRef nameOf(mlir::Type element);

/// The worker of the function around `op`.
mlir::Value workerOf(mlir::Operation *op);

/// Base address and extents behind `array`.
struct ArrayView {
  explicit ArrayView(mlir::Value array);
  mlir::Value base;
  mlir::ValueRange extents;
  int64_t parameter; ///< number of the argument, derivatives included
};

/// Makes `base` and `extents` an array again.
mlir::Value castToArray(mlir::ImplicitLocOpBuilder &builder,
                        mlir::ValueRange parts, mlir::Type type,
                        int64_t parameter);

/// The number of an element or work item, counted row-major. 0 for no indices.
mlir::Value rowMajor(mlir::ImplicitLocOpBuilder &builder,
                     mlir::ValueRange indices, mlir::ValueRange extents);

/// Calls of the functions of code/KernelCode.h; declares them as needed.
class Runtime {
public:
  explicit Runtime(mlir::ModuleOp module);
  /// Writes the tables back.
  ~Runtime();

  /// The number of the source place of `loc`; -1 for none.
  int64_t site(mlir::Location loc);
  /// Another number for the same place; the first one for `variant` 0.
  int64_t site(mlir::Location loc, int64_t variant);
  /// The number of `text`.
  int64_t text(llvm::StringRef text);

  void callRange(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange args);
  void callCopied(mlir::ImplicitLocOpBuilder &builder, mlir::Value launch,
                  mlir::Value arrays, int64_t count);
  void callBeginRange(mlir::ImplicitLocOpBuilder &builder, mlir::Value launch,
                      mlir::Value extents, int64_t rank);
  /// On a module for a device: runs one of its functions, and reads a slot of
  /// the frame.
  void callDeviceRun(mlir::ImplicitLocOpBuilder &builder,
                     mlir::ValueRange args);
  mlir::Value callDeviceRead(mlir::ImplicitLocOpBuilder &builder,
                             mlir::ValueRange args);
  void callCopy(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange args);
  /// Whether the reverse sweep is to be skipped, as an i1.
  mlir::Value callDryRun(mlir::ImplicitLocOpBuilder &builder,
                         mlir::Value worker);
  /// Whether the lengths of loops differ much, as an i1; see code/KernelCode.h.
  mlir::Value callLengthsDiffer(mlir::ImplicitLocOpBuilder &builder,
                                mlir::ValueRange args);
  void callOrderByLength(mlir::ImplicitLocOpBuilder &builder,
                         mlir::ValueRange args);
  void callTapeGrow(mlir::ImplicitLocOpBuilder &builder, mlir::Value worker,
                    int64_t bytes);
  void callStepZero(mlir::ImplicitLocOpBuilder &builder, mlir::Value worker);
  void callIndexError(mlir::ImplicitLocOpBuilder &builder, mlir::Value worker,
                      int64_t parameter, int64_t dim, mlir::Value index,
                      mlir::Value extent);
  /// Watches `parameter` from now on.
  void callUse(mlir::ImplicitLocOpBuilder &builder, mlir::Value worker,
               int64_t parameter, mlir::Value element, ElementUse use,
               int64_t storedValue);
  /// `numbers` are f64: up to three operands, and the result.
  /// `words`: 64 bits each, in the order of the letters of the text.
  void callAssertFailed(mlir::ImplicitLocOpBuilder &builder, mlir::Value worker,
                        llvm::StringRef text, mlir::ValueRange words,
                        bool refuses);
  void callPrint(mlir::ImplicitLocOpBuilder &builder, mlir::Value worker,
                 llvm::StringRef text, mlir::ValueRange words);
  void callNotFinite(mlir::ImplicitLocOpBuilder &builder, mlir::Value worker,
                     llvm::StringRef text, mlir::ValueRange numbers);
  void callElementNotFinite(mlir::ImplicitLocOpBuilder &builder,
                            mlir::Value worker, llvm::StringRef text,
                            int64_t parameter, mlir::Value element,
                            mlir::Value value);
  void callCheckSum(mlir::ImplicitLocOpBuilder &builder, mlir::Value worker,
                    llvm::StringRef text, int64_t parameter,
                    mlir::Value element, mlir::Value added,
                    llvm::StringRef type);
  /// Devices only: `numbers` are what was added, and the element now.
  void callSumNotFinite(mlir::ImplicitLocOpBuilder &builder, mlir::Value worker,
                        llvm::StringRef text, int64_t parameter,
                        mlir::Value element, mlir::ValueRange numbers);
  /// Devices only; see device/DeviceSums.c.
  void callAddUp(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange args);
  void callAddUpPair(mlir::ImplicitLocOpBuilder &builder,
                     mlir::ValueRange args);
  /// An f64, in the first thread of a block; 0 in others.
  mlir::Value callBlockSum(mlir::ImplicitLocOpBuilder &builder,
                           mlir::ValueRange args);
  /// Whether this thread has finished them.
  mlir::Value callFinishSums(mlir::ImplicitLocOpBuilder &builder,
                             mlir::ValueRange args);
  /// Devices only: `costate_device_tape_NAME` of device/DeviceTape.c. With
  /// a result, which follows from numbers or the worker; else null.
  mlir::Value callTape(mlir::ImplicitLocOpBuilder &builder,
                       llvm::StringRef name, mlir::Type result,
                       mlir::ValueRange args);
  mlir::Value callTape(mlir::ImplicitLocOpBuilder &builder,
                       llvm::StringRef name, bool hasResult,
                       mlir::ValueRange args);
  /// The same: `costate_device_sort_NAME` of device/DeviceSort.c.
  mlir::Value callSort(mlir::ImplicitLocOpBuilder &builder,
                       llvm::StringRef name, bool hasResult,
                       mlir::ValueRange args);
  mlir::Value callWarpMax(mlir::ImplicitLocOpBuilder &builder,
                          mlir::Value value);
  /// Declares `costate_add_later_f32`, `_f64` and `_f16`.
  void declareAddLater();
  /// Devices only: `costate_device_add_common_f32` and `_f64`, and the same of
  /// `add_in_block`.
  void declareAddCommon();
  /// In front of the latter, and behind them; all threads call these.
  void callBeginInBlock(mlir::ImplicitLocOpBuilder &builder);
  void callEndInBlock(mlir::ImplicitLocOpBuilder &builder);

private:
  struct Traits {
    bool cold = false, noReturn = false, readsOnly = false;
    bool collective = false; ///< threads wait for each other
  };
  /// Calls `name` with the worker, the place, the text, the element and f64s.
  void callOfElement(mlir::ImplicitLocOpBuilder &builder, llvm::StringRef name,
                     Traits traits, mlir::Value worker, llvm::StringRef text,
                     int64_t parameter, mlir::Value element,
                     mlir::ValueRange numbers);
  void callMessage(mlir::ImplicitLocOpBuilder &builder, llvm::StringRef name,
                   Traits traits, mlir::Value worker, llvm::StringRef text,
                   mlir::ValueRange words, size_t most);
  mlir::LLVM::LLVMFuncOp declare(llvm::StringRef plainName, mlir::Type result,
                                 mlir::TypeRange params, Traits traits);

  mlir::ModuleOp module;
  llvm::SmallVector<mlir::Attribute> sites, texts;
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> variants;
  llvm::SmallVector<int64_t> watched;
  mlir::Type i32, i64, f64, pointer, none;
};

mlir::Value constant(mlir::ImplicitLocOpBuilder &builder, int64_t value);

} // namespace costate::conversion
