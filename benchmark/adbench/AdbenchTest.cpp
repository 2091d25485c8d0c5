#include "Labels.h"
#include "adbench/Ba.h"
#include "adbench/Gmm.h"
#include "adbench/Lstm.h"
#include "adbench/Plain.h"
#include "base/VulkanChip.h"
#include "runtime/Device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

COSTATE_LABEL("AdbenchBa.Perturbed*", repeats);
COSTATE_LABEL("*.ObjectiveAndGradient*", waits);
COSTATE_LABEL("AdbenchGmm.*", sample);
COSTATE_LABEL("AdbenchLstm.*", sample);
COSTATE_LABEL("AdbenchGmm.ObjectiveAndGradientAgreeWithTheReferences", slow);
COSTATE_LABEL("AdbenchLstm.EveryEntryOfARandomGradientAgreesWithAComplexStep",
              slow);
COSTATE_LABEL("AdbenchBa.ResidualsAndJacobiansAgreeWithTheReferences", slow);

namespace costate::adbench {
namespace {

namespace fs = std::filesystem;

fs::path data() {
  const char *folder = std::getenv("COSTATE_DATA");
  return folder ? fs::path(folder) / "adbench" : fs::path();
}

#define NEEDS_DATA()                                                           \
  if (!fs::is_directory(data()))                                               \
  GTEST_SKIP() << "no inputs of ADBench: set COSTATE_DATA"

/// A file that lives as long as this object.
class TemporaryFile {
public:
  TemporaryFile(const std::string &name, const std::string &text)
      : path(fs::path(testing::TempDir()) / name) {
    std::ofstream(path) << text;
  }
  ~TemporaryFile() { fs::remove(path); }
  fs::path path;
};

std::string failureOf(auto &&read, const std::string &text) {
  TemporaryFile file("adbench_failure.txt", text);
  try {
    read(file.path);
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::BadFile);
    return error.what();
  }
  return "no failure";
}

TEST(AdbenchFiles, AGmmFileIsReadInOrder) {
  TemporaryFile file("gmm_tiny.txt",
                     "2 1 2\n0.5\n1 2\n3 4 5\n6 7\n8 9\n1.5 2\n");
  GmmInput gmm = readGmm(file.path);
  EXPECT_EQ(gmm.name, "gmm_tiny");
  EXPECT_EQ(gmm.alpha, std::vector<double>{0.5});
  EXPECT_EQ(gmm.mu, (std::vector<double>{1, 2}));
  EXPECT_EQ(gmm.icf, (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(gmm.x, (std::vector<double>{6, 7, 8, 9}));
  EXPECT_EQ(gmm.gamma, 1.5);
  EXPECT_EQ(gmm.m, 2);
}

TEST(AdbenchFiles, OneCameraIsReplicatedForAllObservations) {
  TemporaryFile file("ba_tiny.txt",
                     "2 3 4 1 2 3 4 5 6 7 8 9 10 11 12 13 14 0.5 15 16");
  BaInput ba = readBa(file.path);
  EXPECT_EQ(ba.cameras.size(), 22u);
  EXPECT_EQ(ba.cameras[11], 1);
  EXPECT_EQ(ba.points.size(), 9u);
  EXPECT_EQ(ba.cameraOf, (std::vector<int32_t>{0, 1, 0, 1}));
  EXPECT_EQ(ba.pointOf, (std::vector<int32_t>{0, 1, 2, 0}));
  EXPECT_EQ(ba.features[7], 16);
}

TEST(AdbenchFiles, ObservationsThatDifferAreReadOneByOne) {
  TemporaryFile file(
      "ba_varied.txt",
      "1 2 2 1 2 3 4 5 6 7 8 9 10 11 1 2 3 4 5 6 0 1 0.5 7 8 0 0 0.25 9 10");
  BaInput ba = readBa(file.path);
  EXPECT_EQ(ba.pointOf, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(ba.weights, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(ba.features, (std::vector<double>{7, 8, 9, 10}));
}

TEST(AdbenchFiles, ABadFileIsNamedWithItsFault) {
  EXPECT_NE(failureOf(readGmm, "2 1").find("ends too early"),
            std::string::npos);
  EXPECT_NE(
      failureOf(readGmm, "1 1 1 0 0 0 0 1 0 9").find("1 numbers too many"),
      std::string::npos);
  EXPECT_NE(
      failureOf(readGmm, "1 one 1").find("`one 1`, which is not a number"),
      std::string::npos);
  EXPECT_NE(failureOf(readGmm, "1 -3 1").find("a whole number of at least 1"),
            std::string::npos);
  EXPECT_NE(failureOf(readGmm, "1 1 1000000000 0").find("ends too early"),
            std::string::npos);
  EXPECT_NE(failureOf(readBa, "1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 0 0")
                .find("does not have"),
            std::string::npos);
  EXPECT_THROW(readGmm("no_such_file.txt"), Error);
}

TEST(AdbenchPlain, ObjectiveAndGradientAgreeWithTheReferences) {
  NEEDS_DATA();
  for (auto &file : inputs(data(), "gmm_")) {
    auto reference = readGradient(file);
    if (!reference)
      continue;
    EXPECT_LE(
        relativeError({gmmObjective(readGmm(file))}, {reference->objective}),
        1e-12)
        << file;
    EXPECT_LE(relativeError(gmmGradient(readGmm(file)), reference->gradient),
              1e-12)
        << file;
  }
}

/// Mesa's Vulkan driver for the CPU does, after some iterations.
bool endsLoops(const Device &device) {
  auto features = parseVulkanChip(device.shared()->info().target);
  return features && features->endsLongLoops;
}

void expectRight(const GmmInput &input, double objective,
                 const std::vector<double> &gradient) {
  Gmm gmm(Device::best(), input);
  gmm.runObjective();
  gmm.runGradient();
  EXPECT_LE(relativeError({gmm.objective()}, {objective}), 1e-12) << input.name;
  EXPECT_LE(relativeError(gmm.gradient(), gradient), 1e-10) << input.name;
}

TEST(AdbenchGmm, ObjectiveAndGradientAgreeWithTheReferences) {
  NEEDS_DATA();
  for (auto &file : inputs(data(), "gmm_"))
    if (auto reference = readGradient(file))
      expectRight(readGmm(file), reference->objective, reference->gradient);
}

TEST(AdbenchGmm, EveryEntryOfARandomGradientAgreesWithAComplexStep) {
  for (int64_t d : {1, 3}) {
    GmmInput input = randomGmm(d, 4, 30);
    input.m = 2;
    input.gamma = 1.25;
    std::vector<double> gradient(input.alpha.size() + input.mu.size() +
                                 input.icf.size());
    std::vector<double> unit(gradient.size());
    for (size_t i = 0; i < gradient.size(); ++i) {
      unit[i] = 1;
      gradient[i] = gmmDirectional(input, unit);
      unit[i] = 0;
    }
    expectRight(input, gmmObjective(input), gradient);
    EXPECT_LE(relativeError(gmmGradient(input), gradient), 1e-12);
  }
}

void expectRight(const LstmInput &input, double objective,
                 const std::vector<double> &gradient,
                 int64_t stepsOfLaunch = 0) {
  Lstm lstm(Device::best(), input, stepsOfLaunch);
  lstm.runObjective();
  lstm.runGradient();
  EXPECT_LE(relativeError({lstm.objective()}, {objective}), 1e-12)
      << input.name;
  EXPECT_LE(relativeError(lstm.gradient(), gradient), 1e-10) << input.name;
  lstm.runGradient(); // what the arrays hold now does not count
  EXPECT_LE(relativeError(lstm.gradient(), gradient), 1e-10) << input.name;
}

TEST(AdbenchLstm, ObjectiveAndGradientAgreeWithTheReferences) {
  NEEDS_DATA();
  int64_t stepsOfLaunch =
      endsLoops(Device::best()) ? 64 : 0; // it is one thread
  for (auto &file : inputs(data(), "lstm_"))
    if (auto reference = readGradient(file)) {
      LstmInput input = readLstm(file);
      EXPECT_LE(relativeError({lstmObjective(input)}, {reference->objective}),
                1e-12)
          << file;
      expectRight(input, reference->objective, reference->gradient,
                  stepsOfLaunch);
    }
}

TEST(AdbenchLstm, EveryEntryOfARandomGradientAgreesWithAComplexStep) {
  for (int64_t layers : {1, 3}) {
    LstmInput input = randomLstm(layers, 6, 5);
    std::vector<double> gradient(input.main.size() + input.extra.size()),
        unit(gradient.size());
    for (size_t i = 0; i < gradient.size(); ++i) {
      unit[i] = 1;
      gradient[i] = lstmDirectional(input, unit);
      unit[i] = 0;
    }
    expectRight(input, lstmObjective(input), gradient);
    expectRight(input, lstmObjective(input), gradient, 2);
  }
}

void expectRight(const BaInput &input, std::vector<double> residuals,
                 std::vector<double> jacobians) {
  Ba ba(Device::best(), input);
  ba.runResiduals();
  ba.runJacobians();
  std::vector<double> ourResiduals = ba.residuals(),
                      ourJacobians = ba.jacobians();
  ourResiduals.resize(residuals.size());
  ourJacobians.resize(jacobians.size());
  EXPECT_LE(relativeError(ourResiduals, residuals), 1e-9) << input.name;
  EXPECT_LE(relativeError(ourJacobians, jacobians), 1e-9) << input.name;
}

TEST(AdbenchBa, ResidualsAndJacobiansAgreeWithTheReferences) {
  NEEDS_DATA();
  for (auto &file : inputs(data(), "ba"))
    if (auto reference = readBaReference(file)) {
      if (!reference->secondResidualKnown)
        reference->residuals.resize(1);
      expectRight(readBa(file), reference->residuals, reference->jacobians);
    }
}

void expectComplexStep(const BaInput &input) {
  std::vector<double> residuals;
  baResiduals(input, residuals);
  expectRight(input, residuals, baJacobians(input));
}

TEST(AdbenchBa, PerturbedInputsAgreeWithComplexSteps) {
  NEEDS_DATA();
  for (auto &file : inputs(data(), "ba"))
    expectComplexStep(perturbed(readBa(file)));
}

TEST(AdbenchBa, RandomObservationsAgreeWithComplexSteps) {
  expectComplexStep(randomBa(3, 7, 50));
}

} // namespace
} // namespace costate::adbench
