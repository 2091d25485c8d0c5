// What threads of a GPU call to report an error, of which the smallest
// work item wins, or to print. For bitcode that is linked into device code; see
// CMakeLists.txt. Layouts are those of base/DeviceWords.h and
// conversion/KernelToLLVM/Runtime.h.

typedef struct {
  long site, text, count, workItem, words[8];
} Message;

typedef struct {
  unsigned lock, kind;
  long workItem, site, words[6];
  unsigned long printed, room;
  Message *messages;
} Cell;

typedef struct {
  char *tapeTop, *tapeEnd, *tapeBase;
  long workItem, lane;
  Cell *errors;
} Worker;

enum Kind {
  IndexError = 1,
  StepZero,
  NotFinite,
  ElementNotFinite,
  SumNotFinite,
  AssertFailed,
  Refused
};

static long bits(double number) { return __builtin_bit_cast(long, number); }

// Ends the thread.
#ifdef COSTATE_TRANSLATED
#define NOINLINE
__attribute__((noreturn)) void costate_device_exit(void);
__attribute__((convergent)) _Bool costate_device_opaque(_Bool value);
#else
#define NOINLINE __attribute__((noinline))
__attribute__((noreturn)) static void costate_device_exit(void) {
  __asm__ volatile("exit;");
  __builtin_unreachable();
}
static _Bool costate_device_opaque(_Bool value) { return value; }
#endif

static void write(volatile Cell *cell, long workItem, unsigned kind, long site,
                  const long *words) {
  if (cell->kind && workItem >= cell->workItem)
    return;
  cell->workItem = workItem;
  cell->site = site;
  for (int k = 0; k < 6; ++k)
    cell->words[k] = words[k];
  __nvvm_membar_gl();
  cell->kind = kind;
}

// A lower one has been reported, or is about to be.
static _Bool isLate(const volatile Cell *cell, long workItem) {
  if (!cell->kind)
    return 0;
  __nvvm_membar_gl();
  return workItem >= cell->workItem;
}

// Whoever has the lock gives it back in the iteration that it got it in: lanes
// may run in lockstep. There is one way back to the start of the loop, and what
// it takes is hidden: of two ways LLVM makes two loops, and who has left the
// inner one, with the lock, waits for those that ask for it there. Of a million
// work items that fail few come to it.
NOINLINE __attribute__((noreturn)) static void report(Worker *worker,
                                                      unsigned kind, long site,
                                                      long a, long b, long c,
                                                      long d, long e, long f) {
  volatile Cell *cell = worker->errors;
  long words[] = {a, b, c, d, e, f};
  _Bool done = 0;
  while (!done) {
    _Bool ends = isLate(cell, worker->workItem);
    if (!ends &&
        !__atomic_exchange_n(&worker->errors->lock, 1u, __ATOMIC_RELAXED)) {
      __nvvm_membar_gl();
      write(cell, worker->workItem, kind, site, words);
      __nvvm_membar_gl();
      __atomic_store_n(&worker->errors->lock, 0u, __ATOMIC_RELAXED);
      ends = 1;
    }
    done = costate_device_opaque(ends);
  }
  costate_device_exit();
}

void costate_device_index_error(Worker *worker, long site, long parameter,
                                long dim, long index, long extent) {
  report(worker, IndexError, site, parameter, dim, index, extent, 0, 0);
}

void costate_device_step_zero(Worker *worker, long site) {
  report(worker, StepZero, site, 0, 0, 0, 0, 0, 0);
}

void costate_device_not_finite(Worker *worker, long site, long text, long count,
                               double a, double b, double c, double d) {
  report(worker, NotFinite, site, text, count, bits(a), bits(b), bits(c),
         bits(d));
}

void costate_device_element_not_finite(Worker *worker, long site, long text,
                                       long parameter, long element,
                                       double value) {
  report(worker, ElementNotFinite, site, text, parameter, element, bits(value),
         0, 0);
}

void costate_device_sum_not_finite(Worker *worker, long site, long text,
                                   long parameter, long element, double added,
                                   double sum) {
  report(worker, SumNotFinite, site, text, parameter, element, bits(added),
         bits(sum), 0);
}

void costate_device_assert_failed(Worker *worker, long site, long text,
                                  long count, long a, long b, long c, long d) {
  report(worker, AssertFailed, site, text, count, a, b, c, d);
}

void costate_device_refused(Worker *worker, long site, long text, long count,
                            long a, long b, long c, long d) {
  report(worker, Refused, site, text, count, a, b, c, d);
}

NOINLINE void costate_device_print(Worker *worker, long site, long text,
                                   long count, long a, long b, long c, long d,
                                   long e, long f, long g, long h) {
  Cell *cell = worker->errors;
  unsigned long at = __atomic_fetch_add(&cell->printed, 1ul, __ATOMIC_RELAXED);
  if (at >= cell->room)
    return;
  Message *message = cell->messages + at;
  message->site = site;
  message->text = text;
  message->count = count;
  message->workItem = worker->workItem;
  long words[] = {a, b, c, d, e, f, g, h};
  for (int k = 0; k < 8; ++k)
    message->words[k] = words[k];
}
