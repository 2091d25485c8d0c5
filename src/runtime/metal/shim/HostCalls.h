#pragma once
/// What a program in Metal's language, compiled for the host, calls of the
/// simulated GPU that it runs on; and how it is called. Included by both.

struct CostateHostCalls {
  long (*blockThreads)();
  void (*blockBarrier)();
  /// The lanes that are at this line of the program together.
  unsigned (*activeLanes)(long line);
  unsigned long (*maximum)(unsigned long value);
  /// Of the lanes of `here`, who all call it.
  unsigned (*shuffle)(unsigned here, unsigned value, int lane, long line);
  unsigned (*shuffleDown)(unsigned here, unsigned value, int lanes, long line);
  unsigned (*ballot)(unsigned here, bool holds, long line);
};
