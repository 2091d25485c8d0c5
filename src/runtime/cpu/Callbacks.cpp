/// The functions that compiled code calls. Those that leave it do so by
/// longjmp, so they keep no object with a destructor: helpers do the work.

#include "runtime/Text.h"
#include "runtime/cpu/Range.h"

using namespace costate;
using namespace costate::runtime;
using costate::runtime::cpu::CpuWorker;

static CpuWorker &self(Worker *worker) {
  return *static_cast<CpuWorker *>(worker);
}

static void fail(CpuWorker &worker, ErrorCode code, const std::string &text) {
  worker.launch->fail(
      worker.chunk,
      {code, "kernel `" + worker.launch->request.code->name + "`" + text});
}

static std::string memoryText(const cpu::MemoryBudget &budget) {
  return bytesText(budget.left()) + " of the limit of " +
         bytesText(budget.limit()) + " are left";
}

static const char *const raiseLimit =
    "raise the limit (DeviceOptions::memory_limit, COSTATE_MEMORY_LIMIT)";

[[gnu::noinline]] static bool growTape(CpuWorker &worker, size_t bytes,
                                       int64_t site) {
  if (worker.grow(bytes))
    return true;
  cpu::Engine &engine = worker.launch->engine;
  engine.pool.trim();
  if (worker.grow(bytes))
    return true;
  fail(worker, ErrorCode::OutOfMemory,
       siteText(*worker.launch->request.code, site) +
           ": out of memory for the values that this loop saves for its "
           "gradient: " +
           (worker.chunk < 0 ? "the serial code"
                             : "one iteration of the range") +
           " needs more than " + bytesText(worker.tapeUsed() + bytes) + ", " +
           memoryText(engine.budget) +
           "; split the loop over several launches, or " + raiseLimit);
  return false;
}

[[gnu::noinline]] static void failLog(CpuWorker &worker) {
  fail(
      worker, ErrorCode::OutOfMemory,
      ": out of memory for the additions that `deterministic` puts in order; " +
          memoryText(worker.launch->engine.budget) +
          "; split the range over several launches, or " + raiseLimit);
}

[[gnu::noinline]] static void failIndex(CpuWorker &worker, int64_t site,
                                        int64_t argument, int64_t dim,
                                        int64_t index, int64_t extent) {
  fail(worker, ErrorCode::OutOfRange,
       siteText(*worker.launch->request.code, site) + ": index " +
           std::to_string(index) + " is outside dimension " +
           std::to_string(dim) + " of argument " +
           std::to_string(argument + 1) + ", whose extent is " +
           std::to_string(extent));
}

[[gnu::noinline]] static void failStep(CpuWorker &worker, int64_t site) {
  fail(worker, ErrorCode::KernelFailed,
       siteText(*worker.launch->request.code, site) +
           ": the step of this loop is 0, so it would not end; give it another "
           "step");
}

[[gnu::noinline]] static void failRange(CpuWorker &worker, int64_t site) {
  fail(worker, ErrorCode::KernelFailed,
       siteText(*worker.launch->request.code, site) +
           ": this range has more iterations than can be counted; give it "
           "smaller extents");
}

template <class T>
static bool addLater(CpuWorker &worker, T *address, T value) {
  if (worker.chunk < 0) {
    *address += value; // serial code has an order
    return true;
  }
  cpu::AddLog *log = worker.launch->additions;
  if (log && log->append(worker.additions, address, value))
    return true;
  failLog(worker);
  return false;
}

extern "C" {

void costate::runtime::costate_range(Launch *launch, RangeBody body,
                                     const void *frame, int64_t iterations,
                                     double *sums, int64_t sumCount,
                                     int64_t site) {
  if (iterations < 0)
    failRange(*launch->serial, site);
  if (iterations < 0 ||
      !cpu::runRange(*launch, {body, frame, iterations, sums, sumCount}))
    longjmp(launch->serial->escape, 1);
}

void costate::runtime::costate_tape_grow(Worker *worker, int64_t bytes,
                                         int64_t site) {
  if (!growTape(self(worker), static_cast<size_t>(bytes), site))
    longjmp(self(worker).escape, 1);
}

int32_t costate::runtime::costate_dry_run(const Worker *worker) {
  return static_cast<const CpuWorker *>(worker)->launch->dryRun;
}

void costate::runtime::costate_add_later_f32(Worker *worker, float *address,
                                             float value) {
  if (!addLater(self(worker), address, value))
    longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_add_later_f64(Worker *worker, double *address,
                                             double value) {
  if (!addLater(self(worker), address, value))
    longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_index_error(Worker *worker, int64_t site,
                                           int64_t argument, int64_t dim,
                                           int64_t index, int64_t extent) {
  failIndex(self(worker), site, argument, dim, index, extent);
  longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_step_zero(Worker *worker, int64_t site) {
  failStep(self(worker), site);
  longjmp(self(worker).escape, 1);
}

} // extern "C"
