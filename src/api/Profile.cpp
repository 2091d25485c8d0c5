#include "costate/profile.h"

#include "api/Checked.h"
#include "base/Fork.h"
#include "base/Profile.h"

#include <cstdio>

using namespace costate;
using namespace costate::api;

Profile::Profile(const std::string &file)
    : keeper(checked(profile::Keeper::start(file))) {}

Profile::~Profile() {
  if (!keeper)
    return; // moved from
  ForeignWork work;
  (void)keeper->end();
}

void Profile::end() {
  ForeignWork work;
  checked(keeper->end());
}

std::vector<ProfileEntry> Profile::entries() const {
  ForeignWork work;
  std::vector<ProfileEntry> entries;
  auto seconds = [](int64_t nanoseconds) {
    return 1e-9 * static_cast<double>(nanoseconds);
  };
  for (const profile::Total &total : keeper->totals())
    entries.push_back({profile::nameOf(total.span.kind), total.span.name,
                       total.span.source, total.count, seconds(total.all),
                       seconds(total.least), seconds(total.most)});
  return entries;
}

/// "1.23 ms", as wide as all of them.
static std::string timeText(double seconds) {
  static constexpr struct {
    double size;
    const char *name;
  } units[] = {{1, "s "}, {1e-3, "ms"}, {1e-6, "us"}};
  char text[32];
  for (auto [size, name] : units)
    if (seconds >= size || name == units[2].name) {
      std::snprintf(text, sizeof text, "%8.2f %s", seconds / size, name);
      break;
    }
  return text;
}

/// Without its folder.
static std::string fileOf(const std::string &source) {
  return source.substr(source.rfind('/') + 1);
}

std::string Profile::report() const {
  std::string text =
      "        all   count         mean         most  kind     name\n";
  for (const ProfileEntry &entry : entries()) {
    char count[32];
    std::snprintf(count, sizeof count, "%8llu",
                  static_cast<unsigned long long>(entry.count));
    double mean = entry.seconds / static_cast<double>(entry.count);
    std::string kind = entry.kind;
    kind.resize(7, ' ');
    text += timeText(entry.seconds) + count + "  " + timeText(mean) + "  " +
            timeText(entry.most) + "  " + kind + "  " + entry.name +
            (entry.source.empty() ? "" : " (" + fileOf(entry.source) + ")") +
            "\n";
  }
  return text;
}

ProfileSpan::ProfileSpan(const std::string &name) {
  if (!profile::isOn())
    return;
  this->name = name;
  begin = profile::now();
}

ProfileSpan::~ProfileSpan() {
  if (begin >= 0)
    profile::add({profile::Kind::Work, name}, begin, profile::now());
}
