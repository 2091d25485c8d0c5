/// In which order exchanges stand beside other work, and how a rank that is
/// lost is noticed, without GPUs.

#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/FakeNccl.h"

#include <gtest/gtest.h>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::cuda;
using namespace std::chrono_literals;

namespace {

/// A rank with a number to send, and room for one.
struct Rank {
  std::shared_ptr<Session> session;
  std::shared_ptr<Ranks> ranks;
  float out = 0, in = 0;

  static Buffer bufferOf(float &number) {
    return {reinterpret_cast<std::byte *>(&number), sizeof number};
  }
  Stream main() {
    Stream stream = nullptr;
    (void)session->withStream([&](Stream current) {
      stream = current;
      return success;
    });
    return stream;
  }
  void then(Work work) { FakeCuda::append(main(), std::move(work)); }
  void exchange(int peer) {
    Parcel sent{peer, bufferOf(out)}, received{peer, bufferOf(in)};
    Result<> done = ranks->exchange({&sent, 1}, {&received, 1});
    EXPECT_TRUE(done.ok()) << done.error().text;
  }
  void wait() { EXPECT_TRUE(ranks->wait().ok()); }
};

class NcclQueue : public testing::Test {
protected:
  void open(std::chrono::milliseconds timeout = 10s) {
    for (int k = 0; k < 2; ++k) {
      rank[k].session = *Session::open(cuda.api(), 0);
      Result<std::shared_ptr<Ranks>> joined =
          joinRanks(nccl.api(), rank[k].session, {{}, k, 2, timeout});
      ASSERT_TRUE(joined.ok());
      rank[k].ranks = *joined;
    }
  }
  void TearDown() override {
    for (Rank &one : rank)
      one.ranks = nullptr, one.session = nullptr;
    EXPECT_EQ(nccl.live, 0u);
    EXPECT_EQ(cuda.liveStreams(), 0u);
    EXPECT_EQ(cuda.liveEvents(), 0u);
    EXPECT_EQ(cuda.liveGraphs(), 0u);
    EXPECT_EQ(cuda.liveAllocations(), 0u);
  }
  static bool becomes(const std::function<bool()> &condition) {
    for (int k = 0; k < 500 && !condition(); ++k)
      std::this_thread::sleep_for(10ms);
    return condition();
  }

  FakeCuda cuda;
  FakeNccl nccl;
  Rank rank[2];
};

TEST_F(NcclQueue, AnExchangeComesAfterWhatWasQueuedAndBesideWhatIs) {
  open();
  float between[2] = {};
  for (int k = 0; k < 2; ++k) {
    Rank &own = rank[k];
    own.then([&own, k] { own.out = float(k + 1); });
    own.exchange(1 - k);
    own.then([&own, &between, k] { between[k] = own.in + 10; });
  }
  FakeCuda::run(rank[0].main());
  EXPECT_EQ(between[0], 10) << "it has waited for the exchange";
  for (Rank &own : rank)
    own.wait();
  FakeCuda::run(rank[0].main());
  FakeCuda::run(rank[1].main());
  EXPECT_EQ(rank[0].in, 2);
  EXPECT_EQ(rank[1].in, 1);
}

TEST_F(NcclQueue, WhatIsLaunchedBesideAnExchangeLeavesRoom) {
  open();
  EXPECT_FALSE(rank[0].session->isShared());
  rank[0].exchange(1);
  EXPECT_TRUE(rank[0].session->isShared());
  rank[0].wait();
  EXPECT_FALSE(rank[0].session->isShared());
  rank[0].exchange(1);
  rank[0].ranks = nullptr;
  EXPECT_FALSE(rank[0].session->isShared());
}

TEST_F(NcclQueue, ManyExchangesAtATime) {
  open();
  for (int t = 0; t < 100; ++t)
    for (int k = 0; k < 2; ++k) {
      rank[k].then([this, k, t] { rank[k].out = float(t); });
      rank[k].exchange(1 - k);
      rank[k].wait();
    }
  for (Rank &own : rank)
    FakeCuda::run(own.main());
  EXPECT_EQ(rank[0].in, 99);
  EXPECT_EQ(rank[1].in, 99);
}

TEST_F(NcclQueue, SumsTakeThePlaceOfTheElements) {
  open();
  for (int k = 0; k < 2; ++k) {
    rank[k].out = float(k + 1);
    EXPECT_TRUE(
        rank[k].ranks->sum(Rank::bufferOf(rank[k].out), DType::F32).ok());
  }
  for (Rank &own : rank)
    FakeCuda::run(own.main());
  EXPECT_EQ(rank[0].out, 3);
  EXPECT_EQ(rank[1].out, 3);
  Result<> none = rank[0].ranks->sum({}, DType::I16);
  EXPECT_EQ(none.error().code, ErrorCode::BadArgument);
}

TEST_F(NcclQueue, AGraphRepeatsExchanges) {
  open();
  Rank &own = rank[0], &other = rank[1];
  ASSERT_EQ(own.session->beginCapture(), success);
  own.then([&own] { own.out *= 2; });
  own.exchange(1);
  own.wait();
  GraphRun run = nullptr;
  ASSERT_EQ(own.session->endCapture(run), success);
  own.out = 1, other.out = 10;
  for (float sent : {2.0f, 4.0f}) {
    other.then([&other] { ++other.out; });
    other.exchange(0);
    other.wait();
    cuda.api().launchGraph(run, own.main());
    own.ranks->watchReplay();
    FakeCuda::run(own.main());
    FakeCuda::run(other.main());
    EXPECT_EQ(other.in, sent);
    EXPECT_EQ(own.in, other.out);
  }
  cuda.api().destroyGraphRun(run);
}

TEST_F(NcclQueue, ARankThatDoesNotAnswerIsLost) {
  open(100ms);
  rank[0].exchange(1);
  std::this_thread::sleep_for(300ms);
  EXPECT_TRUE(rank[0].session->doubts().ok()) << "it has not begun yet";
  FakeCuda::run(rank[0].main());
  ASSERT_TRUE(becomes([&] { return !rank[0].session->doubts().ok(); }));
  EXPECT_EQ(rank[0].session->doubts().error().code, ErrorCode::RankLost);
  EXPECT_NE(rank[0].session->doubts().error().text.find("within 100 ms"),
            std::string::npos);
  EXPECT_EQ(rank[0].ranks->exchange({}, {}).error().code, ErrorCode::RankLost);
  EXPECT_EQ(rank[0].ranks->wait().error().code, ErrorCode::RankLost);
  EXPECT_TRUE(becomes([&] { return nccl.abandoned > 0; }));
  rank[0].ranks = nullptr;
  EXPECT_TRUE(rank[0].session->doubts().ok());
}

TEST_F(NcclQueue, ALaterOneOfManyThatHangsIsNoticed) {
  open(100ms);
  for (int t = 0; t < 30; ++t)
    for (int k = 0; k < 2; ++k) {
      rank[k].exchange(1 - k);
      rank[k].wait();
    }
  rank[0].exchange(1); // nobody runs that
  FakeCuda::run(rank[1].main());
  FakeCuda::run(rank[0].main());
  EXPECT_TRUE(becomes([&] { return !rank[0].session->doubts().ok(); }));
}

TEST_F(NcclQueue, AReplayThatHangsIsNoticed) {
  open(100ms);
  FakeCuda::run(rank[0].main());
  rank[0].ranks->watchReplay();
  EXPECT_TRUE(becomes([&] { return !rank[0].session->doubts().ok(); }));
}

TEST_F(NcclQueue, WhatNcclNoticesEndsAllRanks) {
  open();
  nccl.state = ncclRemoteError;
  for (Rank &own : rank)
    ASSERT_TRUE(becomes([&] { return !own.session->doubts().ok(); }));
  EXPECT_NE(rank[1].session->doubts().error().text.find("a fake error"),
            std::string::npos);
}

} // namespace
