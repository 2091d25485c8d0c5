#include "runtime/simt/Callbacks.h"

#include "base/DeviceWords.h"
#include "base/Fork.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <initializer_list>
#include <mutex>

namespace costate::runtime {

struct DeviceWorker {
  std::byte *tapeTop, *tapeEnd, *tapeBase;
  int64_t workItem;
  int64_t lane;
  DeviceErrorCell *errors;
};

static void report(const DeviceWorker &worker, DeviceErrorCell::Kind kind,
                   int64_t site, std::initializer_list<int64_t> words) {
  static Mutex mutex;
  std::lock_guard lock(mutex);
  DeviceErrorCell &cell = *worker.errors;
  if (cell.kind != DeviceErrorCell::None && cell.workItem <= worker.workItem)
    return;
  cell.kind = kind;
  cell.workItem = worker.workItem;
  cell.site = site;
  std::ranges::copy(words, cell.words);
}

static int64_t bits(double number) { return std::bit_cast<int64_t>(number); }

extern "C" {

void costate_device_index_error(DeviceWorker *worker, int64_t site,
                                int64_t parameter, int64_t dim, int64_t index,
                                int64_t extent) {
  report(*worker, DeviceErrorCell::IndexError, site,
         {parameter, dim, index, extent});
  simt::leaveThread();
}

void costate_device_step_zero(DeviceWorker *worker, int64_t site) {
  report(*worker, DeviceErrorCell::StepZero, site, {});
  simt::leaveThread();
}

void costate_device_not_finite(DeviceWorker *worker, int64_t site, int64_t text,
                               int64_t count, double a, double b, double c,
                               double d) {
  report(*worker, DeviceErrorCell::NotFinite, site,
         {text, count, bits(a), bits(b), bits(c), bits(d)});
  simt::leaveThread();
}

void costate_device_element_not_finite(DeviceWorker *worker, int64_t site,
                                       int64_t text, int64_t parameter,
                                       int64_t element, double value) {
  report(*worker, DeviceErrorCell::ElementNotFinite, site,
         {text, parameter, element, bits(value)});
  simt::leaveThread();
}

void costate_device_sum_not_finite(DeviceWorker *worker, int64_t site,
                                   int64_t text, int64_t parameter,
                                   int64_t element, double added, double sum) {
  report(*worker, DeviceErrorCell::SumNotFinite, site,
         {text, parameter, element, bits(added), bits(sum)});
  simt::leaveThread();
}

void costate_device_assert_failed(DeviceWorker *worker, int64_t site,
                                  int64_t text, int64_t count, int64_t a,
                                  int64_t b, int64_t c, int64_t d) {
  report(*worker, DeviceErrorCell::AssertFailed, site,
         {text, count, a, b, c, d});
  simt::leaveThread();
}

void costate_device_refused(DeviceWorker *worker, int64_t site, int64_t text,
                            int64_t count, int64_t a, int64_t b, int64_t c,
                            int64_t d) {
  report(*worker, DeviceErrorCell::Refused, site, {text, count, a, b, c, d});
  simt::leaveThread();
}

void costate_device_print(DeviceWorker *worker, int64_t site, int64_t text,
                          int64_t count, int64_t a, int64_t b, int64_t c,
                          int64_t d, int64_t e, int64_t f, int64_t g,
                          int64_t h) {
  DeviceErrorCell &cell = *worker->errors;
  uint64_t at = std::atomic_ref(cell.printed).fetch_add(1);
  if (at < cell.room)
    cell.messages[at] = {
        site, text, count, worker->workItem, {a, b, c, d, e, f, g, h}};
}

void costate_device_add_common_f32(float *place, float value) {
  std::atomic_ref(*place).fetch_add(value, std::memory_order_relaxed);
}

void costate_device_add_common_f64(double *place, double value) {
  std::atomic_ref(*place).fetch_add(value, std::memory_order_relaxed);
}

} // extern "C"

} // namespace costate::runtime
