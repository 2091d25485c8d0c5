#include "runtime/MemoryBudget.h"

#include "runtime/Text.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace costate::runtime {

bool MemoryBudget::take(size_t bytes) {
  size_t before = used.load();
  do {
    if (before > limitBytes || bytes > limitBytes - before)
      return false;
  } while (!used.compare_exchange_weak(before, before + bytes));
  size_t seen = most.load();
  while (seen < before + bytes &&
         !most.compare_exchange_weak(seen, before + bytes)) {
  }
  if (idle)
    idle->shrink(left());
  return true;
}

size_t MemoryBudget::left() const {
  size_t taken = used.load();
  return taken < limitBytes ? limitBytes - taken : 0;
}

std::string leftText(const MemoryBudget &budget) {
  return bytesText(budget.left()) + " of the limit of " +
         bytesText(budget.limit()) + " are left";
}

Failure noRoomFailure(const MemoryBudget &budget, size_t bytes) {
  return {ErrorCode::OutOfMemory, bytesText(bytes) +
                                      " do not fit: " + leftText(budget) +
                                      "; release arrays, or " + raiseLimit};
}

std::string tapeMemoryText(const MemoryBudget &budget,
                           const std::string &need) {
  return "out of memory for the values that this loop saves for its "
         "gradient: " +
         need + ", " + leftText(budget) +
         "; split the loop over several launches, or " + raiseLimit;
}

std::string tapeBudgetText(size_t budget, const std::string &need,
                           bool isShared) {
  return "the values that this loop saves for its gradient do not fit into the "
         "tape budget of " +
         bytesText(budget) + ": " + need +
         "; raise the budget (`tape_budget`, COSTATE_TAPE_BUDGET), " +
         (isShared ? "use fewer threads, " : "") +
         "or keep what the loop carries from one iteration to the next in "
         "variables instead of arrays, so that it can run again";
}

/// The number in `path`, or the largest one (also for `max`).
static size_t readLimit(const std::string &path) {
  std::ifstream file(path);
  size_t value;
  return file >> value ? value : SIZE_MAX;
}

/// The least limit on the way from group `path` to the root of `mount`.
static size_t groupLimit(const std::string &mount, std::string path,
                         const char *file) {
  size_t least = readLimit(mount + "/" + file);
  while (!path.empty() && path != "/") {
    least = std::min(least, readLimit(mount + path + "/" + file));
    path.resize(path.find_last_of('/'));
  }
  return least;
}

/// Lines of /proc/self/cgroup read `0::/path` (version 2) or `4:memory:/path`.
static size_t controlGroupLimit() {
  size_t least = std::min(
      groupLimit("/sys/fs/cgroup", "", "memory.max"),
      groupLimit("/sys/fs/cgroup/memory", "", "memory.limit_in_bytes"));
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || second + 1 >= line.size() ||
        line[second + 1] != '/')
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (controllers.empty())
      least = std::min(least, groupLimit("/sys/fs/cgroup", path, "memory.max"));
    else if (controllers.find("memory") != std::string::npos)
      least = std::min(least, groupLimit("/sys/fs/cgroup/memory", path,
                                         "memory.limit_in_bytes"));
  }
  return least;
}

static size_t addressSpaceLeft() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return SIZE_MAX;
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  size_t taken = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur > taken ? limit.rlim_cur - taken : 0;
}

Result<std::optional<size_t>> tapeBudget(std::optional<size_t> chosen) {
  const char *text = std::getenv("COSTATE_TAPE_BUDGET");
  if (chosen || !text || !*text)
    return chosen;
  if (text == std::string("0"))
    return std::optional<size_t>(0);
  Result<size_t> bytes = parseBytes(text);
  if (!bytes)
    return bytes.error();
  return std::optional(*bytes);
}

Result<size_t> defaultMemoryLimit() {
  if (const char *text = std::getenv("COSTATE_MEMORY_LIMIT"); text && *text)
    return parseBytes(text);
  size_t physical = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
                    static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t available =
      std::min({physical, controlGroupLimit(), addressSpaceLeft()});
  size_t reserve =
      std::max(available / 8, std::min<size_t>(available / 2, 256u << 20));
  return available - reserve;
}

} // namespace costate::runtime
