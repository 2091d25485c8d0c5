#include "base/Fork.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>

namespace costate {
namespace {

using std::chrono::milliseconds;

std::atomic<int> begun = 0;
std::atomic<bool> works = false;

void workFor(std::chrono::milliseconds time) {
  ForeignWork work;
  works = true;
  ++begun;
  std::this_thread::sleep_for(time);
  works = false;
}

template <class F> void begin(F body) {
  std::thread(body).detach();
  while (!begun)
    std::this_thread::yield();
}

/// What others have registered meanwhile, as libraries do.
void expectAtEnd(void (*check)()) { std::atexit(check); }

[[noreturn]] void endWhile(milliseconds work, void (*check)(), int status) {
  begin([=] { workFor(work); });
  expectAtEnd(check);
  std::exit(status);
}

TEST(ForkTest, TheEndWaitsForForeignWork) {
  EXPECT_EXIT(endWhile(
                  milliseconds(300),
                  [] {
                    if (works)
                      _exit(1);
                  },
                  7),
              testing::ExitedWithCode(7), "");
}

[[noreturn]] void endBetweenWorks() {
  begin([] {
    for (;;)
      workFor(milliseconds(1));
  });
  expectAtEnd([] {
    const int before = begun;
    std::this_thread::sleep_for(milliseconds(100));
    if (begun != before || works)
      _exit(1);
    workFor(milliseconds(0)); // of the thread that ends the process
  });
  std::exit(7);
}

TEST(ForkTest, NoForeignWorkBeginsAtTheEnd) {
  EXPECT_EXIT(endBetweenWorks(), testing::ExitedWithCode(7), "");
}

[[noreturn]] void endOfLongWork() {
  static char buffer[100];
  std::setvbuf(stderr, buffer, _IOFBF, sizeof buffer);
  std::fputs("said", stderr);
  endWhile(std::chrono::hours(1), [] { _exit(1); }, 7);
}

TEST(ForkTest, WhatTakesTooLongEndsWithTheProcess) {
  EXPECT_EXIT(endOfLongWork(), testing::ExitedWithCode(7), "said");
}

/// Never destroyed by anything but the end.
std::thread &joinedAtEnd() {
  static auto &thread = *new std::thread;
  return thread;
}

[[noreturn]] void endThatJoins() {
  static std::atomic<bool> stops = false;
  joinedAtEnd() = std::thread([] {
    while (!stops)
      workFor(milliseconds(1));
    workFor(milliseconds(1));
  });
  expectAtEnd([] {
    stops = true;
    joinedAtEnd().join();
  });
  std::exit(7);
}

TEST(ForkTest, AThreadThatTheEndWaitsForGoesOn) {
  EXPECT_EXIT(endThatJoins(), testing::ExitedWithCode(7), "");
}

[[noreturn]] void endWithWork(bool ends) {
  static bool waited;
  static EndWait wait([=](EndWait::Moment end) {
    waited = std::chrono::steady_clock::now() < end;
    return ends;
  });
  expectAtEnd([] { _exit(waited ? 3 : 1); });
  std::exit(7);
}

TEST(ForkTest, TheEndWaitsForThreadsOfOthers) {
  EXPECT_EXIT(endWithWork(true), testing::ExitedWithCode(3), "");
  EXPECT_EXIT(endWithWork(false), testing::ExitedWithCode(7), "");
}

TEST(ForkTest, AForkDoesNotKnowForeignWorkOfItsParent) {
  std::atomic<bool> started = false, stops = false;
  std::thread other([&] {
    ForeignWork work;
    started = true;
    while (!stops)
      std::this_thread::yield();
  });
  while (!started)
    std::this_thread::yield();
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EXIT(std::exit(7), testing::ExitedWithCode(7), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  stops = true;
  other.join();
}

} // namespace
} // namespace costate
