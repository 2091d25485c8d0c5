/// The functions that compiled code calls. Those that leave it do so by
/// longjmp, so they keep no object with a destructor: helpers do the work.

#include "runtime/Message.h"
#include "runtime/Text.h"
#include "runtime/cpu/Range.h"

#include <cmath>

#include <cstring>

using namespace costate;
using namespace costate::runtime;
using costate::runtime::cpu::CpuWorker;
using costate::runtime::cpu::ElementTrace;

static CpuWorker &self(Worker *worker) {
  return *static_cast<CpuWorker *>(worker);
}

static void fail(CpuWorker &worker, ErrorCode code, const std::string &text) {
  worker.launch->fail(
      worker.chunk,
      {code, "kernel `" + worker.launch->request.code->name + "`" + text});
}

static void fail(CpuWorker &worker, Failure failure) {
  worker.launch->fail(worker.chunk, std::move(failure));
}

static WorkItemPlace placeOf(const CpuWorker &worker) {
  return {worker.workItem, worker.launch->extents};
}

[[gnu::noinline]] static bool growTape(CpuWorker &worker, size_t bytes,
                                       int64_t site) {
  if (worker.grow(bytes))
    return true;
  cpu::Engine &engine = worker.launch->engine;
  engine.trim();
  if (worker.grow(bytes))
    return true;
  std::string need =
      std::string(worker.chunk < 0 ? "the serial code"
                                   : "one work item of the range") +
      " needs more than " + bytesText(worker.tapeUsed() + bytes);
  bool isChosen = worker.launch->request.tapeBudget;
  fail(worker, ErrorCode::OutOfMemory,
       siteText(*worker.launch->request.code, site) + ": " +
           (isChosen ? tapeBudgetText(worker.launch->tapeBudget, need, true)
                     : tapeMemoryText(engine.budget, need)));
  return false;
}

[[gnu::noinline]] static void failLog(CpuWorker &worker) {
  fail(
      worker, ErrorCode::OutOfMemory,
      ": out of memory for the additions that `deterministic` puts in order; " +
          leftText(worker.launch->engine.budget) +
          "; split the range over several launches, or " + raiseLimit);
}

static std::string workItemText(const Launch &launch, int64_t workItem) {
  return WorkItemPlace{workItem, launch.extents}.text();
}

[[gnu::noinline]] static void failIndex(CpuWorker &worker, int64_t site,
                                        int64_t parameter, int64_t dim,
                                        int64_t index, int64_t extent) {
  fail(worker, indexFailure(worker.launch->request, site, parameter, dim, index,
                            extent, placeOf(worker)));
}

[[gnu::noinline]] static void failStep(CpuWorker &worker, int64_t site) {
  fail(worker, stepFailure(*worker.launch->request.code, site));
}

[[gnu::noinline]] static void failRange(CpuWorker &worker, int64_t site) {
  fail(worker, countFailure(*worker.launch->request.code, site));
}

static std::string waysOut(const ElementTrace &trace, ElementUse use) {
  ElementTrace all = trace;
  all.uses |= static_cast<uint8_t>(use);
  auto has = [&](ElementUse one) { return all.has(one); };
  bool stores = trace.stores() || use == ElementUse::Store ||
                use == ElementUse::SharedStore;
  if (!stores && !has(ElementUse::Load))
    return "use one range for each way to update";
  if (!stores)
    return "read the array in a range of its own, before or after";
  if (has(ElementUse::Load))
    return "store into another array, or use one range for each";
  if (has(ElementUse::Update) || has(ElementUse::Minimum) ||
      has(ElementUse::Maximum))
    return "store in a range of its own, before or after";
  return "let every work item store elements of its own, or add with `+=`";
}

/// What is done to an element, with two forms of its first word.
static std::string verb(const ElementTrace &trace, bool plural) {
  auto words = [&](const char *stem, const char *rest) {
    return std::string(stem) + (plural ? "" : "s") + rest;
  };
  if (trace.stores())
    return words("store", "");
  if (trace.updatesBy(ElementUse::Update))
    return words("add", " to");
  if (trace.updatesBy(ElementUse::CombineBits))
    return words("combine", " bits of");
  if (trace.updatesBy(ElementUse::Exchange))
    return words("exchange", "");
  if (trace.updatesBy(ElementUse::Minimum) ||
      trace.updatesBy(ElementUse::Maximum))
    return words("take", " the minimum or maximum of");
  return words(trace.updates() ? "update" : "read", "");
}

/// What the trace tells about the work items before `now`.
static std::string usersText(const Launch &launch, const ElementTrace &trace,
                             int64_t now) {
  bool known = trace.workItem != now;
  std::string who = !known ? "other work items "
                    : trace.several
                        ? workItemText(launch, trace.workItem) + " and others "
                        : workItemText(launch, trace.workItem) + " ";
  return who + verb(trace, !known || trace.several) +
         (known ? siteText(*launch.request.code, trace.site) : "");
}

[[gnu::noinline]] static void failRace(CpuWorker &worker, int64_t site,
                                       int64_t parameter, int64_t element,
                                       ElementUse use,
                                       const ElementTrace &trace) {
  const Launch &launch = *worker.launch;
  ElementTrace now{static_cast<uint8_t>(use)};
  fail(worker, ErrorCode::Race,
       siteText(*launch.request.code, site) + ": " +
           workItemText(launch, worker.workItem) + " " + verb(now, false) +
           " " +
           elementText(launch.request, parameter, element, Naming::OfPrimal) +
           ", which " + usersText(launch, trace, worker.workItem) +
           "; work items have no order, so the result and its gradient are "
           "left to chance; " +
           waysOut(trace, use));
}

[[gnu::noinline]] static bool addUse(CpuWorker &worker, int64_t site,
                                     int64_t parameter, int64_t element,
                                     ElementUse use) {
  std::optional<ElementTrace> before = worker.launch->shadow->add(
      parameter, element, use, worker.workItem, site);
  if (before)
    failRace(worker, site, parameter, element, use, *before);
  return !before;
}

[[gnu::noinline]] static void failCount(CpuWorker &worker, int64_t site) {
  fail(worker, ErrorCode::KernelFailed,
       siteText(*worker.launch->request.code, site) +
           ": this range has more work items than the search for races can "
           "tell apart; use smaller extents while `debug` is on");
}

[[gnu::noinline]] static void failFinite(CpuWorker &worker, int64_t site,
                                         int64_t text,
                                         std::span<const double> numbers) {
  fail(worker, finiteFailure(worker.launch->request, site, text, numbers,
                             placeOf(worker)));
}

[[gnu::noinline]] static void failElement(CpuWorker &worker, int64_t site,
                                          int64_t text, int64_t parameter,
                                          int64_t element,
                                          std::span<const double> numbers) {
  fail(worker, elementFailure(worker.launch->request, site, text, parameter,
                              element, numbers, placeOf(worker)));
}

[[gnu::noinline]] static void failAssert(CpuWorker &worker, int64_t site,
                                         int64_t text,
                                         std::span<const int64_t> words) {
  fail(worker, assertFailure(*worker.launch->request.code, site, text, words,
                             placeOf(worker)));
}

[[gnu::noinline]] static void failRefused(CpuWorker &worker, int64_t site,
                                          int64_t text,
                                          std::span<const int64_t> words) {
  fail(worker,
       refusal(worker.launch->request, site, text, words, placeOf(worker)));
}

/// False if the element, which `added` has been added to, is inf or NaN.
template <class T>
static bool checkSum(CpuWorker &worker, int64_t site, int64_t text,
                     int64_t parameter, int64_t element, double added) {
  const LaunchRequest &request = worker.launch->request;
  auto *array = reinterpret_cast<T *>(
      request.arguments[slotOf(*request.code, parameter)]);
  double now =
      T(std::atomic_ref(array[element]).load(std::memory_order_relaxed));
  if (std::isfinite(now))
    return true;
  double numbers[] = {added, now};
  failElement(worker, site, text, parameter, element, numbers);
  return false;
}

template <class T, class V>
static bool addLater(CpuWorker &worker, T *address, V value) {
  if (worker.chunk < 0) {
    *address = T(*address + T(value)); // serial code has an order
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
                                     const void *frame, int64_t workItems,
                                     double *sums, int64_t sumCount,
                                     int64_t kind, int64_t site, int64_t slab,
                                     int64_t lanes) {
  bool tooMany = launch->shadow && workItems > ElementTrace::mostWorkItems;
  if (workItems < 0)
    failRange(*launch->serial, site);
  else if (tooMany)
    failCount(*launch->serial, site);
  if (workItems < 0 || tooMany ||
      !cpu::runRange(*launch, {body, frame, workItems, sums, sumCount, kind,
                               slab, lanes, site}))
    longjmp(launch->serial->escape, 1);
}

void costate::runtime::costate_copies(Launch *launch, const CopiedArray *arrays,
                                      int64_t count) {
  launch->copied = {arrays, static_cast<size_t>(count)};
}

void costate::runtime::costate_copy(Launch *, void *to, const void *from,
                                    int64_t bytes) {
  if (bytes > 0)
    std::memcpy(to, from, static_cast<size_t>(bytes));
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

void costate::runtime::costate_add_later_f16(Worker *worker, f16 *address,
                                             float value) {
  if (!addLater(self(worker), address, value))
    longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_index_error(Worker *worker, int64_t site,
                                           int64_t parameter, int64_t dim,
                                           int64_t index, int64_t extent) {
  failIndex(self(worker), site, parameter, dim, index, extent);
  longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_step_zero(Worker *worker, int64_t site) {
  failStep(self(worker), site);
  longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_begin_range(Launch *launch,
                                           const int64_t *extents,
                                           int64_t rank) {
  launch->extents = {extents, static_cast<size_t>(rank)};
  if (launch->shadow)
    launch->shadow->beginRange();
}

void costate::runtime::costate_use(Worker *worker, int64_t site,
                                   int64_t parameter, int64_t element,
                                   int64_t use) {
  if (!addUse(self(worker), site, parameter, element,
              static_cast<ElementUse>(use)))
    longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_print(Worker *worker, int64_t site, int64_t text,
                                     int64_t count, int64_t a, int64_t b,
                                     int64_t c, int64_t d, int64_t e, int64_t f,
                                     int64_t g, int64_t h) {
  if (self(worker).launch->request.quiet)
    return;
  int64_t words[] = {a, b, c, d, e, f, g, h};
  printMessage(*self(worker).launch->request.code, site, text,
               {words, static_cast<size_t>(count)}, placeOf(self(worker)));
}

void costate::runtime::costate_assert_failed(Worker *worker, int64_t site,
                                             int64_t text, int64_t count,
                                             int64_t a, int64_t b, int64_t c,
                                             int64_t d) {
  int64_t words[] = {a, b, c, d};
  failAssert(self(worker), site, text, {words, static_cast<size_t>(count)});
  longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_refused(Worker *worker, int64_t site,
                                       int64_t text, int64_t count, int64_t a,
                                       int64_t b, int64_t c, int64_t d) {
  int64_t words[] = {a, b, c, d};
  failRefused(self(worker), site, text, {words, static_cast<size_t>(count)});
  longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_not_finite(Worker *worker, int64_t site,
                                          int64_t text, int64_t count, double a,
                                          double b, double c, double d) {
  double numbers[] = {a, b, c, d};
  failFinite(self(worker), site, text, {numbers, static_cast<size_t>(count)});
  longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_element_not_finite(Worker *worker, int64_t site,
                                                  int64_t text,
                                                  int64_t parameter,
                                                  int64_t element,
                                                  double value) {
  failElement(self(worker), site, text, parameter, element, {&value, 1});
  longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_check_sum_f32(Worker *worker, int64_t site,
                                             int64_t text, int64_t parameter,
                                             int64_t element, double added) {
  if (!checkSum<float>(self(worker), site, text, parameter, element, added))
    longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_check_sum_f64(Worker *worker, int64_t site,
                                             int64_t text, int64_t parameter,
                                             int64_t element, double added) {
  if (!checkSum<double>(self(worker), site, text, parameter, element, added))
    longjmp(self(worker).escape, 1);
}

void costate::runtime::costate_check_sum_f16(Worker *worker, int64_t site,
                                             int64_t text, int64_t parameter,
                                             int64_t element, double added) {
  if (!checkSum<f16>(self(worker), site, text, parameter, element, added))
    longjmp(self(worker).escape, 1);
}

} // extern "C"
