#pragma once
/// What a program spends its time on.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace costate {

namespace profile {
class Keeper;
}

/// All times of one name.
struct ProfileEntry {
  /// `launch` of a kernel, as the host sees it; `range` of such a launch on a
  /// CPU; `compile`; `copy`; `wait` of the host for a GPU; `work` that the
  /// program has named; `device`: what a GPU does, by its own clock.
  std::string kind;
  std::string name;   ///< "gradient of swing"
  std::string source; ///< of the kernel: "swing.cpp:9"; empty: unknown
  uint64_t count = 0;
  double seconds = 0, least = 0, most = 0;
};

/// Times whatever all threads and devices do while it lives: launches,
/// compilations, copies, waits. Several may live at a time. Without one,
/// nothing is timed.
///
/// ```cpp
/// Profile profile("step.json");
/// step(x, y);
/// std::cout << profile.report();
/// ```
class Profile {
public:
  /// Each time goes to `file` as well, which Perfetto (ui.perfetto.dev) and
  /// chrome://tracing show; empty: there is no file. Error(BadFile).
  explicit Profile(const std::string &file = "");
  ~Profile();
  Profile(const Profile &) = delete;
  Profile(Profile &&) noexcept = default;

  /// Nothing more is timed, and the file is complete, after a wait for the
  /// GPUs; so does the destructor. Error(BadFile) if it could not be written.
  void end();

  /// So far, by kind and name, the longest first. Waits for GPUs.
  std::vector<ProfileEntry> entries() const;
  /// The same as a table.
  std::string report() const;

private:
  std::shared_ptr<profile::Keeper> keeper;
};

/// Work of the program, by a name, in all profiles for as long as it lives.
class ProfileSpan {
public:
  explicit ProfileSpan(const std::string &name);
  ~ProfileSpan();
  ProfileSpan(const ProfileSpan &) = delete;

private:
  std::string name;
  int64_t begin = -1; ///< nobody keeps a profile
};

} // namespace costate
