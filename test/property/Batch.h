#pragma once
/// Many random programs in processes of their own, for devices that a wrong
/// kernel can take down: a program that crashes or hangs is a finding, and the
/// others go on.

#include "property/Check.h"

#include <array>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

namespace costate::property {

struct BatchOptions {
  std::string device = "cpu";
  uint64_t first = 1;    ///< seed
  uint64_t count = 0;    ///< how many programs
  double seconds = 0;    ///< for how long; 0: until all are done
  unsigned jobs = 0;     ///< processes; 0: one per core
  double patience = 120; ///< seconds for one program before it counts as hung
  /// Seconds that programs have to end once the time is over.
  double grace = 10;
  /// What is done with a seed.
  std::function<Verdict(unsigned)> check = checkSeed;

  /// And, where it stands alone, with its program.
  std::function<Verdict(const Node &, unsigned)> checkProgram =
      [](const Node &program, unsigned seed) {
        return property::check(program, seed);
      };

  static Verdict checkSeed(unsigned seed);
};
const char *nameOf(Verdict::Kind kind);

struct BatchCounts {
  std::array<uint64_t, 6> kinds = {}; ///< by Verdict::Kind
  uint64_t differences = 0, crashed = 0, hung = 0;
  uint64_t unfinished = 0; ///< when the time was over

  uint64_t of(Verdict::Kind kind) const { return kinds[kind]; }
  uint64_t all() const;
  bool good() const;
};

/// Why `device` cannot be opened; empty if it can. In a process of its own: a
/// process that has used a GPU must not be copied.
std::string whyNoDevice(const std::string &device);

/// Checks the programs; prints each that is wrong, crashes or hangs to `out`,
/// and the seeds of those that have not ended in time. Those that hang are
/// checked again at the end, alone. SIGINT and SIGTERM end the time. The
/// process has no threads and has opened no device.
BatchCounts checkBatch(const BatchOptions &options, std::ostream &out);

/// Checks the program of one seed, prints it, and if it is wrong, crashes or
/// hangs the smallest one that does so too; each in a process of its own, as
/// many at a time as there are jobs.
Verdict checkApart(const BatchOptions &options, uint64_t seed,
                   std::ostream &out);

void print(const BatchOptions &options, const BatchCounts &counts,
           double seconds, std::ostream &out);

} // namespace costate::property
