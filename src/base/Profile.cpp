#include "base/Profile.h"

#include "base/Fork.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

using namespace costate;
using namespace costate::profile;

std::atomic<bool> profile::isKept = false;

int64_t profile::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

const char *profile::nameOf(Kind kind) {
  switch (kind) {
  case Kind::Launch:
    return "launch";
  case Kind::Range:
    return "range";
  case Kind::Compile:
    return "compile";
  case Kind::Copy:
    return "copy";
  case Kind::Wait:
    return "wait";
  case Kind::Work:
    return "work";
  case Kind::Device:
    return "device";
  }
  return "";
}

//===-- Trace events ------------------------------------------------------===//

/// As a string of JSON. Bytes that are no UTF-8 come from the user's names and
/// stay as they are.
static std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20)
      result += c;
    else {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      result += code;
    }
  }
  return result + '"';
}

/// Nanoseconds as microseconds, the unit of the format.
static std::string microseconds(int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03lld",
                static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return text;
}

static std::string argumentsOf(const Span &span) {
  std::string text;
  if (!span.source.empty())
    text += "\"source\":" + quoted(span.source);
  if (span.bytes >= 0)
    text += (text.empty() ? "" : ",") + std::string("\"bytes\":") +
            std::to_string(span.bytes);
  return text;
}

namespace {

/// A row of the picture: a thread of the host, or a device.
struct Row {
  int process = 0, thread = 0;
};

/// An array of events, which readers take without its end as well.
class EventFile {
public:
  explicit EventFile(std::FILE *file) : file(file) {
    text = "[\n";
    name("process_name", {host, 0}, "host");
  }
  ~EventFile() { (void)close(); }

  Row ofThread(std::thread::id id) {
    auto [found, isNew] =
        threads.emplace(id, Row{host, static_cast<int>(threads.size()) + 1});
    if (isNew)
      name("thread_name", found->second,
           "thread " + std::to_string(found->second.thread));
    return found->second;
  }
  Row ofDevice(const std::string &device) {
    auto [found, isNew] = devices.emplace(
        device, Row{host + static_cast<int>(devices.size()) + 1, 1});
    if (isNew) {
      name("process_name", found->second, device);
      name("thread_name", found->second, "stream");
    }
    return found->second;
  }
  void add(const Span &span, Row row, int64_t begin, int64_t end) {
    append("{\"name\":" + quoted(span.name) + ",\"cat\":\"" +
           nameOf(span.kind) + "\",\"ph\":\"X\",\"ts\":" + microseconds(begin) +
           ",\"dur\":" + microseconds(end - begin) + placeOf(row) +
           ",\"args\":{" + argumentsOf(span) + "}}");
  }
  bool close() {
    if (!file)
      return isComplete;
    text += "\n]\n";
    flush();
    isComplete &= std::fclose(file) == 0;
    file = nullptr;
    return isComplete;
  }
  /// What has come so far, without a word to the file.
  void abandon() { file = nullptr; }

private:
  static constexpr int host = 1;
  static constexpr size_t mostKept = 1 << 16;

  static std::string placeOf(Row row) {
    return ",\"pid\":" + std::to_string(row.process) +
           ",\"tid\":" + std::to_string(row.thread);
  }
  void name(const char *what, Row row, const std::string &as) {
    append("{\"name\":\"" + std::string(what) + "\",\"ph\":\"M\"" +
           placeOf(row) + ",\"args\":{\"name\":" + quoted(as) + "}}");
  }
  void append(const std::string &event) {
    text += isFirst ? "" : ",\n";
    isFirst = false;
    text += event;
    if (text.size() > mostKept)
      flush();
  }
  void flush() {
    isComplete &= std::fwrite(text.data(), 1, text.size(), file) == text.size();
    text.clear();
  }

  std::FILE *file;
  std::string text;
  bool isFirst = true, isComplete = true;
  std::map<std::thread::id, Row> threads;
  std::map<std::string, Row> devices;
};

} // namespace

//===-- Keepers -----------------------------------------------------------===//

struct Keeper::State {
  using Key = std::tuple<Kind, std::string, std::string>;

  const int64_t start = now();
  const uint32_t forks = forkCount();
  std::optional<EventFile> file;
  std::map<Key, Total> totals;
  bool isRunning = true;

  void add(const Span &span, const std::string *device, int64_t begin,
           int64_t end) {
    // What had begun before.
    begin = std::max(begin, start);
    end = std::max(end, begin);
    Total &total = totals[{span.kind, span.name, span.source}];
    int64_t taken = end - begin;
    total.span = span;
    total.least = total.count ? std::min(total.least, taken) : taken;
    total.most = std::max(total.most, taken);
    total.all += taken;
    ++total.count;
    if (file)
      file->add(span,
                device ? file->ofDevice(*device)
                       : file->ofThread(std::this_thread::get_id()),
                begin - start, end - start);
  }
};

namespace {
/// Of a device, until it has come so far.
struct Pending {
  Span span;
  std::string device;
  std::shared_ptr<Moment> begin, end;
};

struct All {
  Mutex mutex;
  std::vector<std::shared_ptr<Keeper::State>> keepers;
  std::vector<Pending> pending;
  Mutex order; ///< held where moments are asked for
};
constexpr size_t mostPending = 4096;

/// Never destroyed: others may still be timed when the process ends.
All &all() {
  static All &one = *new All;
  return one;
}
} // namespace

static void tellKeepers(const Span &span, const std::string *device,
                        int64_t begin, int64_t end) {
  std::lock_guard lock(all().mutex);
  for (auto &keeper : all().keepers)
    if (keeper->forks == forkCount())
      keeper->add(span, device, begin, end);
}

/// Waits for all that devices have been asked for.
static void tellPending() {
  std::lock_guard inOrder(all().order);
  std::vector<Pending> pending;
  {
    std::lock_guard lock(all().mutex);
    pending.swap(all().pending);
  }
  for (Pending &one : pending) {
    int64_t begin = one.begin->nanoseconds(), end = one.end->nanoseconds();
    tellKeepers(one.span, &one.device, begin, end);
  }
}

void profile::add(const Span &span, int64_t begin, int64_t end) {
  Busy busy;
  tellKeepers(span, nullptr, begin, end);
}

void profile::add(const Span &span, const std::string &device,
                  std::shared_ptr<Moment> begin, std::shared_ptr<Moment> end) {
  Busy busy;
  bool isMuch = false;
  {
    std::lock_guard lock(all().mutex);
    all().pending.push_back({span, device, std::move(begin), std::move(end)});
    isMuch = all().pending.size() >= mostPending;
  }
  if (isMuch)
    tellPending();
}

Result<std::shared_ptr<Keeper>> Keeper::start(const std::string &file) {
  auto state = std::make_shared<State>();
  if (!file.empty()) {
    std::FILE *opened = std::fopen(file.c_str(), "w");
    if (!opened)
      return Failure{ErrorCode::BadFile,
                     "cannot write the profile `" + file +
                         "`; name a file in a folder that exists"};
    std::setvbuf(opened, nullptr, _IONBF, 0); // a fork would write it twice
    state->file.emplace(opened);
  }
  Busy busy;
  std::lock_guard lock(all().mutex);
  all().keepers.push_back(state);
  isKept = true;
  return std::make_shared<Keeper>(state);
}

Keeper::~Keeper() { (void)end(); }

Result<> Keeper::end() {
  Busy busy;
  if (!state->isRunning)
    return {};
  if (state->forks == forkCount())
    tellPending();
  std::lock_guard lock(all().mutex);
  state->isRunning = false;
  std::erase(all().keepers, state);
  isKept = !all().keepers.empty();
  if (!state->file)
    return {};
  if (state->forks != forkCount())
    state->file->abandon(); // it is the parent's
  else if (!state->file->close())
    return Failure{ErrorCode::BadFile,
                   "the profile is not complete: its file could not be "
                   "written; is the disk full?"};
  return {};
}

std::vector<Total> Keeper::totals() {
  Busy busy;
  if (state->isRunning)
    tellPending();
  std::lock_guard lock(all().mutex);
  std::vector<Total> result;
  for (auto &[key, total] : state->totals)
    result.push_back(total);
  std::ranges::stable_sort(
      result, [](const Total &a, const Total &b) { return a.all > b.all; });
  return result;
}
