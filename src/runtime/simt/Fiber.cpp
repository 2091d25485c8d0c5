#include "runtime/simt/Fiber.h"

#include <boost/context/protected_fixedsize_stack.hpp>
#include <unistd.h>
#include <vector>
#ifdef COSTATE_SANITIZE
#include <sanitizer/common_interface_defs.h>
#endif

namespace context = boost::context;

namespace costate::runtime::simt {
namespace {

/// The system makes room for what is used only.
constexpr size_t stackBytes = size_t(1) << 20;

/// Those of Boost's static library use thread-local variables in a way that a
/// library which is loaded late, by Python behind others, has no room for.
struct StackTraits {
  static size_t page_size() {
    return static_cast<size_t>(sysconf(_SC_PAGESIZE));
  }
  static size_t default_size() { return stackBytes; }
};

/// Stacks of one OS thread, each with a page below it that must not be used.
class StackPool {
public:
  ~StackPool() {
    for (context::stack_context &stack : unused)
      system.deallocate(stack);
  }
  context::stack_context allocate() {
    if (unused.empty())
      return system.allocate();
    context::stack_context stack = unused.back();
    unused.pop_back();
    return stack;
  }
  void deallocate(context::stack_context &stack) { unused.push_back(stack); }

private:
  context::basic_protected_fixedsize_stack<StackTraits> system;
  std::vector<context::stack_context> unused;
};

thread_local StackPool pool;

struct PooledStack {
  context::stack_context stack;
  context::stack_context allocate() { return stack; }
  void deallocate(context::stack_context &stack) { pool.deallocate(stack); }
};

#ifdef COSTATE_SANITIZE
void leave(void **fake, const void *bottom, size_t size) {
  __sanitizer_start_switch_fiber(fake, bottom, size);
}
void arrive(void *fake, const void **bottom, size_t *size) {
  __sanitizer_finish_switch_fiber(fake, bottom, size);
}
#else
void leave(void **, const void *, size_t) {}
void arrive(void *, const void **, size_t *) {}
#endif

} // namespace

Fiber::Fiber(std::function<void()> body) : body(std::move(body)) {
  context::stack_context stack = pool.allocate();
  own = {static_cast<char *>(stack.sp) - stack.size, stack.size};
  inside = context::fiber(
      std::allocator_arg, PooledStack{stack},
      [this](context::fiber &&resumer) { return run(std::move(resumer)); });
}

context::fiber Fiber::run(context::fiber &&resumer) {
  arrive(nullptr, &resumers.bottom, &resumers.size);
  outside = std::move(resumer);
  body();
  leave(nullptr, resumers.bottom, resumers.size);
  return std::move(outside);
}

void Fiber::resume() {
  leave(&resumers.fake, own.bottom, own.size);
  inside = std::move(inside).resume();
  arrive(resumers.fake, nullptr, nullptr);
}

void Fiber::suspend() {
  leave(&own.fake, resumers.bottom, resumers.size);
  outside = std::move(outside).resume();
  arrive(own.fake, &resumers.bottom, &resumers.size);
}

} // namespace costate::runtime::simt
