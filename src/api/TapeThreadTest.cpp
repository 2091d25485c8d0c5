#include "api/TapeTest.h"

#include <memory>
#include <thread>

using namespace costate;
using namespace costate::test;

TEST_F(Tapes, RecordOneThreadAtATime) {
  Tape other;
  auto recording = tape.record();
  expectError(ErrorCode::BadArgument, {"recording already"},
              [&] { (void)other.record(); });
  std::thread([&] {
    expectError(ErrorCode::BadArgument, {"recording already", "another thread"},
                [&] { (void)tape.record(); });
  }).join();
  std::thread([&] { square(x, y); }).join();
  EXPECT_EQ(tape.size(), 0u);
  {
    auto moved = std::move(recording);
  }
  auto again = other.record();
  square(x, y);
  EXPECT_EQ(other.size(), 1u);
}

TEST_F(Tapes, EndARecordingFromAnotherThread) {
  auto recording = std::make_unique<Tape::Recording>(tape.record());
  square(x, y);
  std::thread([&] { recording.reset(); }).join();
  square(y, z);
  EXPECT_EQ(tape.size(), 1u);
  Tape other;
  auto next = other.record();
  square(x, y);
  EXPECT_EQ(other.size(), 1u);
}

TEST_F(Tapes, OutliveTheirHandleWhileTheyRecord) {
  auto tape = std::make_unique<Tape>();
  auto recording = tape->record();
  square(x, y);
  tape.reset();
  square(x, y);
  x.fill(1);
}

TEST_F(Tapes, KeepWhatOtherThreadsOverwrite) {
  constexpr int count = 8;
  std::vector<Array<double>> inputs, outputs;
  for (int k = 0; k < count; ++k) {
    inputs.push_back(device.array<double>({10}, grad));
    outputs.push_back(device.array<double>({10}, grad));
    inputs[k].fill(k);
  }
  std::vector<std::thread> writers;
  {
    auto recording = tape.record();
    for (int k = 0; k < count; ++k) {
      square(inputs[k], outputs[k]);
      writers.emplace_back([&, k] {
        for (int round = 0; round < 50; ++round)
          round % 2 ? inputs[k].fill(-1) : square(inputs[k], outputs[k]);
      });
    }
  }
  for (std::thread &writer : writers)
    writer.join();
  for (int k = 0; k < count; ++k)
    outputs[k].grad().fill(1);
  tape.backward();
  for (int k = 0; k < count; ++k)
    EXPECT_EQ(inputs[k].grad().to_host()[5], 2 * k);
}
