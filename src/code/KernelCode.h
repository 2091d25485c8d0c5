#pragma once
/// The border between compiled code and the runtime: what compiled code looks
/// like, and the functions that it calls. No LLVM here.

#include "base/ArraySection.h"
#include "code/DeviceCode.h"
#include "costate/types.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace costate::runtime {

/// Host state of one running launch; opaque to compiled code.
struct Launch;

/// Elements side by side that a range only adds to.
struct CopiedArray {
  std::byte *base;
  int64_t elements;
  int64_t elementBytes;
  int64_t isFloat;
  int64_t additions; ///< of a work item, as far as they can be counted
  int64_t isInLoop;  ///< whether there may be many more
};

/// Where a thread adds to such an array.
struct CopyPlace {
  std::byte *base;
  int64_t isAlone; ///< whether no other thread adds there
};

/// State of one worker thread during a launch. Compiled code reads and writes
/// these words; the tape grows from `tapeTop` towards `tapeEnd`. At the start
/// of a work item of a range the tape is empty: `tapeTop == tapeBase`.
struct Worker {
  std::byte *tapeTop;
  std::byte *tapeEnd;
  std::byte *tapeBase;
  int64_t workItem; ///< debug kernels, and those that print: which one runs,
                    ///< counted row-major
  int64_t isAlone;  ///< whether no other thread runs work items of the launch
  int64_t hasSlab;  ///< whether none does with the first index of this one's
  const CopyPlace *copies; ///< of the arrays of the range
  int64_t tapeBudget;      ///< bytes that the tape may have
};

/// `arguments`: 8-byte slots. An array takes 1 + rank slots (base address, then
/// its extents); a scalar takes one (its bytes, zero extended).
using Entry = void (*)(Launch *launch, Worker *serial,
                       const uint64_t *arguments);

/// Runs work items [begin, end) of a range, counted row-major over its extents.
/// `frame` holds whatever the entry has put there. Stores what this chunk
/// contributes to `sums`: words of 8 bytes.
using RangeBody = void (*)(const void *frame, Worker *worker, int64_t begin,
                           int64_t end, double *sums);

/// Functions that compiled code calls, by these symbol names. `site` indexes
/// KernelCode::sites. Those that do not return leave the generated code by
/// longjmp to the runtime, which makes them an error of the launch.
extern "C" {
/// Runs `body` over all work items, in chunks whose borders depend on the
/// number of work items only if there are sums, and returns when all are done.
/// sums[k] gets the sum over the chunks in order, as `kind`, a CostateSums,
/// says. `body` does best with a multiple of `lanes` work items at a time; some
/// of its additions need not be atomic where chunks are whole slabs of `slab`
/// work items, which have the same first index (0: none). A negative number of
/// work items means that there are more than can be counted: an error.
void costate_range(Launch *launch, RangeBody body, const void *frame,
                   int64_t workItems, double *sums, int64_t sumCount,
                   int64_t kind, int64_t site, int64_t slab, int64_t lanes);
/// Before costate_range: what the range only adds to. Parts of the range get
/// copies of what is small, threads of what is larger.
void costate_copies(Launch *launch, const CopiedArray *arrays, int64_t count);
/// All `bytes` of one array into another.
void costate_copy(Launch *launch, void *to, const void *from, int64_t bytes);
/// Makes room for `bytes` more at `worker->tapeTop`; may move the tape and
/// then updates both pointers. Leaves the kernel when memory runs out.
void costate_tape_grow(Worker *worker, int64_t bytes, int64_t site);
/// Whether this launch only measures tapes: no reverse sweep of a range, no
/// store of the serial code. Called once per range chunk and once per serial
/// run.
int32_t costate_dry_run(const Worker *worker);
/// Whether vectors of `lanes` work items wait for more than `idle` iterations
/// of others, for each of the `count` work items.
int32_t costate_lengths_differ(const int32_t *lengths, int64_t count,
                               int64_t lanes, int64_t idle);
/// places[k]: which of `count` work items, at most orderedBlock, is number k,
/// the longest first, or one that is about as long.
void costate_order_by_length(const int32_t *lengths, int64_t count,
                             uint16_t *places);
/// `deterministic`: remembers the addition for the end of the range. Leaves the
/// kernel when memory runs out.
void costate_add_later_f32(Worker *worker, float *address, float value);
void costate_add_later_f64(Worker *worker, double *address, double value);
void costate_add_later_f16(Worker *worker, f16 *address, float value);
/// `parameter` indexes KernelCode::parameters.
[[noreturn]] void costate_index_error(Worker *worker, int64_t site,
                                      int64_t parameter, int64_t dim,
                                      int64_t index, int64_t extent);
[[noreturn]] void costate_step_zero(Worker *worker, int64_t site);
/// Debug kernels, and those that print, before costate_range: the extents of
/// the range, `rank` of them, which stay there until its end.
void costate_begin_range(Launch *launch, const int64_t *extents, int64_t rank);
/// Debug kernels: the work item of `worker` is about to use an element, counted
/// row-major, of a watched array. `use` is an ElementUse. Leaves the kernel if
/// that is a race.
void costate_use(Worker *worker, int64_t site, int64_t parameter,
                 int64_t element, int64_t use);
/// The search for inf and NaN; `text` indexes KernelCode::texts. The last of
/// `count` numbers is the result of an operation on the others.
[[noreturn]] void costate_not_finite(Worker *worker, int64_t site, int64_t text,
                                     int64_t count, double a, double b,
                                     double c, double d);
[[noreturn]] void costate_element_not_finite(Worker *worker, int64_t site,
                                             int64_t text, int64_t parameter,
                                             int64_t element, double value);
/// See runtime/Message.h; `count` words.
void costate_print(Worker *worker, int64_t site, int64_t text, int64_t count,
                   int64_t a, int64_t b, int64_t c, int64_t d, int64_t e,
                   int64_t f, int64_t g, int64_t h);
[[noreturn]] void costate_assert_failed(Worker *worker, int64_t site,
                                        int64_t text, int64_t count, int64_t a,
                                        int64_t b, int64_t c, int64_t d);
[[noreturn]] void costate_refused(Worker *worker, int64_t site, int64_t text,
                                  int64_t count, int64_t a, int64_t b,
                                  int64_t c, int64_t d);
/// Leaves the kernel if the element is inf or NaN now.
void costate_check_sum_f32(Worker *worker, int64_t site, int64_t text,
                           int64_t parameter, int64_t element, double added);
void costate_check_sum_f64(Worker *worker, int64_t site, int64_t text,
                           int64_t parameter, int64_t element, double added);
void costate_check_sum_f16(Worker *worker, int64_t site, int64_t text,
                           int64_t parameter, int64_t element, double added);
}

/// One parameter of compiled code: an argument of the kernel, an array of the
/// same shape that belongs to it, or a tangent array of one of these.
struct Parameter {
  enum class Role : uint8_t {
    Primal,
    Adjoint,
    Version, ///< what it held before part `part` of the primal; written by the
             ///< recording primal, read by the gradient
    Scratch, ///< to work on, of any contents
    Owners,  ///< i64, likewise
    Marks,   ///< i8, likewise
  };
  Role role;
  uint32_t argument;
  int32_t rank = -1;  ///< -1: a scalar
  uint32_t part = 0;  ///< Version
  uint32_t order = 0; ///< 1: its tangent; 2: the tangent of that; ...

  bool isArgument() const { return role == Role::Primal && order == 0; }
  bool operator==(const Parameter &) const = default;
};

/// What the launch has to know about how compiled code treats an argument.
struct Access {
  bool read = false;        ///< loaded from
  bool written = false;     ///< stored to or updated
  bool activeWrite = false; ///< written with a value that has a derivative
  bool needed = false;      ///< Gradient: read as the launch left it
  bool reloaded = false;    ///< Gradient: also elements that the kernel has
                            ///< stored, so they must be as its launch left them
  Loc passedOn{}; ///< Gradient: where a value without adjoint is loaded that
                  ///< others with one depend on; line 0: nowhere
  ArraySection neededSection;  ///< Gradient: the elements behind `needed`
  ArraySection writtenSection; ///< the elements behind `written`
};

/// What a gradient keeps of one source line, and what it computes again.
struct LineCost {
  std::string file;
  unsigned line = 0;
  int64_t savedBits = 0;    ///< on a tape, each time the line is executed
  int64_t computed = 0;     ///< values computed again in the reverse sweep
  int64_t loaded = 0;       ///< values loaded again
  bool condition = false;   ///< something saved says which branch was taken
  bool tripCount = false;   ///< or the trip count of a loop
  bool runsAgain = false;   ///< a loop that does, from checkpoints
  bool runsInTiles = false; ///< one that is not cut before it has a tape
  bool staysWhole = false;  ///< a loop with `checkpoints` that does not
  bool keepsAll = false;    ///< a loop each of whose iterations has a record
  int64_t checkpoints = 0;  ///< of it, at most; 0: as the tape has room
  int64_t stateBytes = 0, iterationBytes = 0; ///< of one of them; of a record
  /// Lines up to the innermost loop that each of its iterations saves something
  /// of this line; -1: each work item does.
  int64_t loopAbove = -1;
};

/// How a CPU runs the work items of a range.
struct RangeLanes {
  int64_t site = -1;
  int64_t lanes = 0;     ///< of a vector; 0: one work item after the other
  std::string remark;    ///< why, or in which order they come; may be empty
  std::string additions; ///< which of them are made how; empty: none
};

/// Tapes begin with so many bytes, which are as good as there.
constexpr size_t smallTape = 4096;

/// Compiled code of one kernel in one mode, ready to run on the host.
struct KernelCode {
  /// Bytes of the largest tape if none grows.
  size_t smallTapes() const {
    int64_t lanes = 1;
    for (const RangeLanes &range : ranges)
      lanes = std::max(lanes, range.lanes);
    return smallTape * static_cast<size_t>(lanes);
  }

  std::string name; ///< the kernel's name in the source
  Entry entry = nullptr;
  std::vector<Parameter> parameters;  ///< in the order of `arguments`
  std::vector<Access> accesses;       ///< by argument of the primal
  std::vector<std::string> arguments; ///< what the user calls them
  /// By argument: the dimension that has the components of an element, or -1.
  std::vector<int> componentDims;
  std::vector<ArraySection> sections; ///< by parameter: of a Version, what the
                                      ///< gradient reads
  /// Adjoints and tangents that do not exist, so that derivatives of values
  /// that the kernel writes would be dropped.
  std::vector<Parameter> missing;
  std::vector<uint32_t> watched; ///< parameters that costate_use is called for
  std::vector<Loc> sites;        ///< source places, by site number
  /// What the search for inf and NaN says. `%` stands for the next number, `@`
  /// for the element, `#` for the work item. Of messages: base/Message.h.
  std::vector<std::string> texts;
  size_t objectBytes = 0;
  uint64_t objectHash = 0; ///< of what was linked
  bool isLoaded = false;   ///< from a store: nothing was compiled
  bool growsTape = false;  ///< a tape of a work item can exceed `smallTape`
  int64_t recordBytes = 0; ///< bytes of all records that one iteration pushes
  std::vector<LineCost> lines; ///< Gradient: by place; none without a cost
  std::vector<RangeLanes> ranges;
  bool fitsBudget = false;   ///< saves what the tape has room for
  bool leftToChance = false; ///< what it writes depends on the order of work
                             ///< items, other than by rounding
  std::string overwritten;   ///< Gradient: why it needs versions; else empty
  std::shared_ptr<const gpu::DeviceCode> device; ///< null for a CPU
  std::shared_ptr<void> owner;                   ///< keeps the code alive
};

} // namespace costate::runtime
