#include "runtime/cuda/CudaDriver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::cuda;

namespace {

bool hasDriver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library && dlsym(library, "cuInit");
}

TEST(Cuda, AMachineWithoutDriverIsToldSo) {
  if (hasDriver())
    GTEST_SKIP() << "this machine has an NVIDIA driver";
  Result<std::shared_ptr<gpu::Driver>> driver = openCuda(0);
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().code, ErrorCode::NoDevice);
  EXPECT_NE(driver.error().text.find("there is no NVIDIA driver on this "
                                     "machine: libcuda.so.1 cannot be loaded"),
            std::string::npos)
      << driver.error().text;
  EXPECT_EQ(openCuda(0).error().text, driver.error().text);
}

/// add: adds a number to each of `count` words, one per thread.
/// spin: waits for about a tenth of a second, then stores 1.
/// crash: writes to address 8.
constexpr const char *code = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry add$kernel(.param .align 8 .b8 words[24]) {
  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<6>;
  ld.param.u64 %d1, [words]; ld.param.u64 %d2, [words+8]; ld.param.u64 %d3, [words+16];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mul.wide.u32 %d4, %r1, %r2; cvt.u64.u32 %d5, %r3; add.u64 %d4, %d4, %d5;
  setp.ge.u64 %p, %d4, %d2;
  @%p ret;
  shl.b64 %d4, %d4, 3; add.u64 %d4, %d1, %d4;
  ld.u64 %d5, [%d4]; add.u64 %d5, %d5, %d3; st.u64 [%d4], %d5;
  ret;
}
.visible .entry spin$kernel(.param .align 8 .b8 words[8]) {
  .reg .pred %p; .reg .b64 %d<5>;
  ld.param.u64 %d1, [words];
  mov.u64 %d2, %globaltimer;
again:
  mov.u64 %d3, %globaltimer; sub.u64 %d4, %d3, %d2;
  setp.lt.u64 %p, %d4, 100000000;
  @%p bra again;
  mov.u64 %d4, 1; st.u64 [%d1], %d4;
  ret;
}
.visible .entry crash$kernel(.param .align 8 .b8 words[8]) {
  .reg .b64 %d<3>;
  mov.u64 %d1, 8; st.global.u64 [%d1], %d1;
  ret;
}
)";

class CudaGpu : public testing::Test {
protected:
  void SetUp() override {
    Result<std::shared_ptr<gpu::Driver>> opened = openCuda(0);
    if (!opened)
      GTEST_SKIP() << opened.error().text;
    driver = *opened;
  }

  std::byte *allocate(size_t bytes) {
    Result<std::byte *> memory = driver->allocate(bytes);
    EXPECT_TRUE(memory.ok()) << memory.error().text;
    return *memory;
  }
  std::shared_ptr<gpu::Module> load() {
    Result<std::shared_ptr<gpu::Module>> module = driver->load({.image = code});
    EXPECT_TRUE(module.ok()) << module.error().text;
    return *module;
  }
  template <class T> std::vector<T> read(const std::byte *from, size_t count) {
    std::vector<T> values(count);
    check(driver->download(values.data(), from, count * sizeof(T)));
    return values;
  }
  /// A launch that works: the answer is 42.
  void expectWorking() {
    std::byte *memory = allocate(8);
    uint64_t one = 1;
    check(driver->upload(memory, &one, 8));
    uint64_t words[] = {reinterpret_cast<uint64_t>(memory), 1, 41};
    check(driver->launch(*load(), "add", {1, 32}, words));
    EXPECT_EQ(read<uint64_t>(memory, 1)[0], 42u);
    driver->release(memory);
  }
  static void check(const Result<> &result) {
    EXPECT_TRUE(result.ok()) << result.error().text;
  }

  std::shared_ptr<gpu::Driver> driver;
};

TEST_F(CudaGpu, TellsWhatItIs) {
  const gpu::Properties &gpu = driver->properties();
  EXPECT_FALSE(gpu.name.empty());
  EXPECT_EQ(gpu.chip.substr(0, 3), "sm_");
  EXPECT_GT(gpu.multiprocessors, 1);
  EXPECT_GE(gpu.residentThreads, 512 * gpu.multiprocessors);
  EXPECT_GT(gpu.memory, size_t(1) << 30);
  EXPECT_GT(driver->freeBytes(), 0u);
  EXPECT_LE(driver->freeBytes(), gpu.memory);
}

TEST_F(CudaGpu, AnOrdinalThatIsNotThereIsAnError) {
  for (int ordinal : {-1, 1000}) {
    Result<std::shared_ptr<gpu::Driver>> other = openCuda(ordinal);
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().code, ErrorCode::NoDevice);
    EXPECT_NE(other.error().text.find(std::to_string(ordinal)),
              std::string::npos);
  }
}

TEST_F(CudaGpu, NothingIsAnAmountToo) {
  EXPECT_EQ(allocate(0), nullptr);
  uint64_t zero = 0;
  check(driver->upload(nullptr, &zero, 0));
  check(driver->download(&zero, nullptr, 0));
  check(driver->copy(nullptr, nullptr, 0));
  check(driver->fill(nullptr, 0, &zero, 8));
  check(driver->launch(*load(), "crash", {0, 32}, {}));
  driver->release(nullptr);
  check(driver->synchronize());
}

template <class T> std::vector<T> repeated(T value, size_t count) {
  return std::vector<T>(count, value);
}

TEST_F(CudaGpu, ALaunchReachesEveryElementOnce) {
  constexpr size_t count = 1000001;
  std::byte *memory = allocate(count * 8);
  uint64_t zero = 0;
  check(driver->fill(memory, count * 8, &zero, 8));
  uint64_t words[] = {reinterpret_cast<uint64_t>(memory), count, 5};
  std::shared_ptr<gpu::Module> module = load();
  for (int i = 0; i < 3; ++i)
    check(driver->launch(*module, "add", {(count + 255) / 256, 256}, words));
  module = nullptr;
  EXPECT_EQ(read<uint64_t>(memory, count), repeated(uint64_t(15), count));
  driver->release(memory);
}

TEST_F(CudaGpu, TheHostDoesNotWaitForWorkThatIsQueued) {
  std::byte *memory = allocate(16);
  uint64_t words[] = {reinterpret_cast<uint64_t>(memory)};
  std::shared_ptr<gpu::Module> module = load();
  double value = 1.1;
  check(driver->fill(memory, 16, &value, 8));
  check(driver->synchronize());
  driver->counters().reset();
  auto start = std::chrono::steady_clock::now();
  check(driver->launch(*module, "spin", {1, 1}, words));
  uint64_t two = 2;
  check(driver->upload(memory + 8, &two, 8));
  check(driver->fill(memory + 8, 8, &value, 8));
  driver->release(allocate(1 << 20));
  std::chrono::duration<double> queued =
      std::chrono::steady_clock::now() - start;
  EXPECT_LT(queued.count(), 0.05);
  EXPECT_EQ(driver->counters().synchronizations, 0u);
  EXPECT_EQ(read<uint64_t>(memory, 1)[0], 1u);
  std::chrono::duration<double> done = std::chrono::steady_clock::now() - start;
  EXPECT_GT(done.count(), 0.09);
  driver->release(memory);
}

TEST_F(CudaGpu, MemoryIsReusedInTheOrderOfTheStream) {
  std::shared_ptr<gpu::Module> module = load();
  std::byte *memory = allocate(8);
  uint64_t words[] = {reinterpret_cast<uint64_t>(memory)};
  check(driver->launch(*module, "spin", {1, 1}, words));
  driver->release(memory);
  std::byte *again = allocate(8);
  uint64_t two = 2;
  check(driver->upload(again, &two, 8));
  EXPECT_EQ(read<uint64_t>(again, 1)[0], 2u);
  driver->release(again);
}

TEST_F(CudaGpu, AGraphRunsAsOftenAsItIsReplayed) {
  constexpr size_t count = 1000;
  std::byte *memory = allocate(count * 8), *copy = allocate(count * 8);
  std::shared_ptr<gpu::Module> module = load();
  check(driver->prepare(*module, "add", 0));
  uint64_t words[] = {reinterpret_cast<uint64_t>(memory) + 8, count - 1, 3};
  uint64_t zero = 0, pattern = 0x1122334455667788;
  check(driver->beginCapture());
  check(driver->fill(memory, 8, &pattern, 8));
  check(driver->launch(*module, "add", {8, 128}, words));
  const Rows even(memory, 8, count / 2, 16), odd(memory + 8, 8, count / 2, 16);
  check(driver->copy(copy, memory, {even, even}));
  check(driver->copy(copy + 8, memory + 8, {odd, odd}));
  std::jthread([&] {
    check(driver->fill(memory, count * 8, &zero, 1));
  }).join();
  Result<std::shared_ptr<gpu::Captured>> graph = driver->endCapture();
  ASSERT_TRUE(graph.ok()) << graph.error().text;
  EXPECT_EQ(read<uint64_t>(memory, count), repeated(zero, count));
  driver->counters().reset();
  check(driver->replay(**graph));
  check(driver->replay(**graph));
  graph = std::shared_ptr<gpu::Captured>();
  EXPECT_EQ(driver->counters().synchronizations, 0u);
  EXPECT_EQ(driver->counters().launches, 2u);
  std::vector<uint64_t> expected = repeated(uint64_t(6), count);
  expected[0] = pattern;
  EXPECT_EQ(read<uint64_t>(copy, count), expected);
  driver->release(memory);
  driver->release(copy);
}

TEST_F(CudaGpu, WorkGoesToTheStreamOfTheUserInOrder) {
  Result<const CudaApi *> api = loadApi();
  ASSERT_TRUE(api.ok());
  ContextHandle context = nullptr;
  ASSERT_EQ((*api)->own.retainContext(&context, 0), success);
  ASSERT_EQ((*api)->own.pushContext(context), success);
  std::shared_ptr<gpu::Module> module = load();
  std::byte *memory = allocate(16);
  uint64_t zero = 0, words[] = {reinterpret_cast<uint64_t>(memory)};
  check(driver->fill(memory, 16, &zero, 8));
  Stream own = nullptr;
  ASSERT_EQ((*api)->createStream(&own, nonBlockingStream), success);
  for (Stream stream : {own, Stream(nullptr)}) {
    check(driver->launch(*module, "spin", {1, 1}, words));
    check(driver->useStream(stream));
    check(driver->copy(memory + 8, memory, 8));
    // Of the user: after the copy, in front of what we do next.
    ASSERT_EQ((*api)->fill32(reinterpret_cast<Address>(memory), 7, 1, stream),
              success);
    uint64_t add[] = {reinterpret_cast<uint64_t>(memory), 1, 10};
    check(driver->launch(*module, "add", {1, 32}, add));
    check(driver->useStream(std::nullopt));
    EXPECT_EQ(read<uint64_t>(memory, 2), (std::vector<uint64_t>{17, 1}));
  }
  driver->release(memory);
  check(driver->synchronize());
  EXPECT_EQ((*api)->destroyStream(own), success);
  ContextHandle popped = nullptr;
  (*api)->own.popContext(&popped);
  (*api)->own.releaseContext(0);
}

TEST_F(CudaGpu, WorkOfTheDefaultStreamIsInOrderWithoutACall) {
  Result<const CudaApi *> api = loadApi();
  ASSERT_TRUE(api.ok());
  std::shared_ptr<gpu::Module> module = load();
  std::byte *memory = allocate(16);
  uint64_t zero = 0, words[] = {reinterpret_cast<uint64_t>(memory)};
  for (int i = 0; i < 20; ++i) {
    check(driver->fill(memory, 16, &zero, 8));
    check(driver->launch(*module, "spin", {1, 1}, words));
    check(driver->copy(memory + 8, memory, 8));
    ContextHandle context = nullptr;
    ASSERT_EQ((*api)->own.retainContext(&context, 0), success);
    ASSERT_EQ((*api)->own.pushContext(context), success);
    ASSERT_EQ((*api)->fill32(reinterpret_cast<Address>(memory), 7, 1, nullptr),
              success);
    ContextHandle popped = nullptr;
    (*api)->own.popContext(&popped);
    (*api)->own.releaseContext(0);
    uint64_t add[] = {reinterpret_cast<uint64_t>(memory), 1, 10};
    check(driver->launch(*module, "add", {1, 32}, add));
    EXPECT_EQ(read<uint64_t>(memory, 2), (std::vector<uint64_t>{17, 1}));
  }
  driver->release(memory);
}

TEST_F(CudaGpu, AStreamThatSomebodyCapturesTakesNothingByItself) {
  Result<const CudaApi *> api = loadApi();
  ASSERT_TRUE(api.ok());
  ContextHandle context = nullptr;
  ASSERT_EQ((*api)->own.retainContext(&context, 0), success);
  ASSERT_EQ((*api)->own.pushContext(context), success);
  Stream stream = nullptr;
  ASSERT_EQ((*api)->createStream(&stream, nonBlockingStream), success);
  ASSERT_EQ((*api)->beginCapture(stream, CaptureMode::ThreadLocal), success);
  check(driver->useStream(stream));
  Result<> used = driver->synchronize();
  ASSERT_FALSE(used.ok());
  EXPECT_EQ(used.error().code, ErrorCode::CannotCapture) << used.error().text;
  GraphHandle graph = nullptr;
  EXPECT_EQ((*api)->endCapture(stream, &graph), success) << "it is not spoilt";
  EXPECT_EQ((*api)->destroyGraph(graph), success);
  check(driver->useStream(stream));
  expectWorking();
  check(driver->useStream(std::nullopt));
  check(driver->synchronize());
  EXPECT_EQ((*api)->destroyStream(stream), success);
  ContextHandle popped = nullptr;
  (*api)->own.popContext(&popped);
  (*api)->own.releaseContext(0);
}

TEST_F(CudaGpu, TooLargeAnAllocationIsAnErrorAndFreedMemoryComesBack) {
  for (size_t bytes : {SIZE_MAX, driver->properties().memory + 1,
                       driver->properties().memory}) {
    Result<std::byte *> memory = driver->allocate(bytes);
    ASSERT_FALSE(memory.ok());
    EXPECT_EQ(memory.error().code, ErrorCode::OutOfMemory);
    EXPECT_NE(memory.error().text.find("do not fit"), std::string::npos);
    expectWorking();
  }
  size_t most = driver->freeBytes() / 10 * 6;
  for (int i = 0; i < 3; ++i)
    driver->release(allocate(most + i * (size_t(1) << 30)));
  EXPECT_GT(driver->freeBytes(), most);
}

TEST_F(CudaGpu, TextThatIsNoCodeIsAnErrorWithTheReason) {
  Result<std::shared_ptr<gpu::Module>> module = driver->load(
      {.image = ".version 7.0\n.target sm_70\n.address_size 64\nnonsense"});
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().code, ErrorCode::Internal);
  EXPECT_NE(module.error().text.find("CUDA_ERROR_INVALID_PTX"),
            std::string::npos);
  EXPECT_NE(module.error().text.find("nonsense"), std::string::npos)
      << module.error().text;
  expectWorking();
}

TEST_F(CudaGpu, AKernelThatIsNotThereIsAnError) {
  Result<> launched = driver->launch(*load(), "other", {1, 32}, {});
  ASSERT_FALSE(launched.ok());
  EXPECT_NE(launched.error().text.find("`other`"), std::string::npos);
  expectWorking();
}

TEST_F(CudaGpu, AGridThatIsTooLargeIsAnError) {
  std::shared_ptr<gpu::Module> module = load();
  uint64_t words[3] = {};
  for (gpu::Grid grid : {gpu::Grid{1, 4096}, gpu::Grid{int64_t(1) << 40, 32}}) {
    Result<> launched = driver->launch(*module, "add", grid, words);
    ASSERT_FALSE(launched.ok());
    EXPECT_EQ(launched.error().code, ErrorCode::Internal);
    expectWorking();
  }
}

TEST_F(CudaGpu, AModuleOutlivesItsDriver) {
  std::shared_ptr<gpu::Module> module = load();
  driver = nullptr;
  module = nullptr;
  SetUp();
  expectWorking();
}

/// A context is lost after an illegal address, so this is done by a process of
/// its own.
void crash() {
  Result<std::shared_ptr<gpu::Driver>> driver = openCuda(0);
  Result<std::shared_ptr<gpu::Module>> module =
      (*driver)->load({.image = code});
  uint64_t word = 0;
  Result<> launched = (*driver)->launch(**module, "crash", {1, 1}, {&word, 1});
  Result<> done = (*driver)->synchronize();
  bool isNamed = !done.ok() && done.error().code == ErrorCode::KernelFailed;
  Result<std::byte *> memory = (*driver)->allocate(8);
  Result<> again = (*driver)->synchronize();
  (*module).reset();
  (*driver).reset();
  if (!done.ok())
    std::fprintf(stderr, "%s\n", done.error().text.c_str());
  std::exit(launched.ok() && isNamed && !again.ok() ? 0 : 1);
}

TEST(CudaGpuDeathTest, AnIllegalAddressIsAnErrorAndNoCrash) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (Result<std::shared_ptr<gpu::Driver>> opened = openCuda(0); !opened)
    GTEST_SKIP() << opened.error().text;
  EXPECT_EXIT(crash(), testing::ExitedWithCode(0),
              "CUDA_ERROR_ILLEGAL_ADDRESS");
}

} // namespace
