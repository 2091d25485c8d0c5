#include "costate/profile.h"
#include "api/TestKernels.h"
#include "conformance/Errors.h"

#include <algorithm>

using namespace costate;
using costate::test::expectError;

namespace {
class KernelProfiles : public testing::TestWithParam<std::string> {
protected:
  /// Null for none.
  static const ProfileEntry *find(const std::vector<ProfileEntry> &entries,
                                  const std::string &kind,
                                  const std::string &name) {
    auto found = std::ranges::find_if(entries, [&](const ProfileEntry &one) {
      return one.kind == kind && one.name == name;
    });
    return found == entries.end() ? nullptr : &*found;
  }

  Device device = Device::open(GetParam());
  Array<double> x = device.array<double>({100}, grad);
  Array<double> y = device.array<double>({100}, grad);
  Array<int> iterations = device.array<int>({100});
  Kernel loop = test::makeLoop();
  bool isGpu = GetParam() == "simt";
};
} // namespace

TEST_P(KernelProfiles, TellLaunchesAndTheirGradients) {
  loop(x, iterations, y);
  Profile profile;
  for (int times = 0; times < 3; ++times)
    loop(x, iterations, y);
  loop.grad(x, iterations, y);
  auto entries = profile.entries();
  const ProfileEntry *launch = find(entries, "launch", "loop");
  ASSERT_TRUE(launch) << profile.report();
  EXPECT_EQ(launch->count, 3u);
  EXPECT_GT(launch->seconds, 0);
  EXPECT_LE(launch->least, launch->most);
  EXPECT_NE(launch->source.find("TestKernels"), std::string::npos);
  const ProfileEntry *part = find(entries, isGpu ? "device" : "range", "loop");
  ASSERT_TRUE(part) << profile.report();
  EXPECT_EQ(part->count, 3u);
  EXPECT_NE(part->source.find("TestKernels"), std::string::npos);
  EXPECT_LE(part->seconds, launch->seconds);
  EXPECT_TRUE(find(entries, "launch", "gradient of loop"));
  EXPECT_TRUE(find(entries, isGpu ? "device" : "range", "gradient of loop"));
}

TEST_P(KernelProfiles, TellWhatIsCompiledOrLoaded) {
  Profile profile;
  loop(x, iterations, y);
  loop(x, iterations, y);
  auto entries = profile.entries();
  const ProfileEntry *compiled = find(entries, "compile", "compile loop"),
                     *loaded = find(entries, "compile", "load loop");
  ASSERT_TRUE(compiled || loaded) << profile.report();
  EXPECT_EQ((compiled ? compiled : loaded)->count, 1u);
}

TEST_P(KernelProfiles, TellCopiesAndWaits) {
  Profile profile;
  x.from_host(std::vector<double>(100, 1.0));
  x.to_host();
  y.fill(2);
  device.synchronize();
  auto entries = profile.entries();
  for (const char *name : {"upload", "download", "fill"})
    EXPECT_TRUE(find(entries, "copy", name)) << profile.report();
  EXPECT_EQ(find(entries, "wait", "wait for all that is queued") != nullptr,
            isGpu);
}

TEST_P(KernelProfiles, TellGraphs) {
  loop(x, iterations, y);
  Graph graph = device.capture([&] { loop(x, iterations, y); });
  Profile profile;
  graph.replay();
  auto entries = profile.entries();
  EXPECT_TRUE(find(entries, "launch", "graph of 1")) << profile.report();
  EXPECT_TRUE(
      find(entries, isGpu ? "device" : "range", isGpu ? "graph" : "loop"))
      << profile.report();
}

TEST_P(KernelProfiles, TellWorkThatTheProgramNames) {
  Profile profile;
  {
    ProfileSpan span("step");
    loop(x, iterations, y);
  }
  profile.end();
  ProfileSpan late("late");
  auto entries = profile.entries();
  const ProfileEntry *step = find(entries, "work", "step");
  ASSERT_TRUE(step);
  EXPECT_GE(step->seconds, find(entries, "launch", "loop")->seconds);
  EXPECT_FALSE(find(entries, "work", "late"));
  EXPECT_NE(profile.report().find("work     step"), std::string::npos)
      << profile.report();
}

TEST_P(KernelProfiles, NameTheFileThatCannotBeWritten) {
  expectError(ErrorCode::BadFile, {"nowhere/at/all.json"},
              [] { Profile profile("nowhere/at/all.json"); });
}

INSTANTIATE_TEST_SUITE_P(All, KernelProfiles, testing::Values("cpu", "simt"),
                         [](const auto &info) { return info.param; });
