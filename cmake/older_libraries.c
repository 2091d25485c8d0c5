// What libraries that run on older systems have instead of the newest functions
// of glibc and libstdc++: older versions of them, chosen by name, or our own.
// The linker calls these for the names in older_libraries.rsp.

#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

uint32_t __wrap_arc4random(void) {
  uint32_t number;
  while (getrandom(&number, sizeof number, 0) != sizeof number)
    ;
  return number;
}

#ifdef __aarch64__
#define FIRST "GLIBC_2.17"
#else
#define FIRST "GLIBC_2.2.5"
#endif

double olderHypot(double x, double y);
float olderHypotf(float x, float y);
void olderWait(void *condition, void *lock);
__asm__(".symver olderHypot, hypot@" FIRST);
__asm__(".symver olderHypotf, hypotf@" FIRST);
__asm__(".symver olderWait, "
        "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@"
        "GLIBCXX_3.4.11");

double __wrap_hypot(double x, double y) { return olderHypot(x, y); }

float __wrap_hypotf(float x, float y) { return olderHypotf(x, y); }

void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
    void *condition, void *lock) {
  olderWait(condition, lock);
}
