#include "runtime/gpu/ValidatingDriver.h"
#include "base/Fork.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace costate::runtime::gpu {
namespace {

Failure defect(const std::string &text) {
  return {ErrorCode::Internal, "validation: " + text};
}

std::string addressText(uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(address));
  return text;
}

/// Pieces of memory by their addresses.
class Pieces {
public:
  using Entry = std::pair<const uint64_t, size_t>;

  void add(uint64_t start, size_t bytes) { pieces[start] = bytes; }
  bool remove(uint64_t start) { return pieces.erase(start); }
  void removeOverlapping(uint64_t start, size_t bytes) {
    auto at = pieces.lower_bound(start);
    if (at != pieces.begin() && endOf(*std::prev(at)) > start)
      --at;
    while (at != pieces.end() && at->first < start + bytes)
      at = pieces.erase(at);
  }
  /// The one that `address` is in; null for none.
  const Entry *find(uint64_t address) const {
    auto after = pieces.upper_bound(address);
    if (after == pieces.begin())
      return nullptr;
    const Entry &piece = *std::prev(after);
    return address < endOf(piece) ? &piece : nullptr;
  }
  static uint64_t endOf(const Entry &piece) {
    return piece.first + piece.second;
  }
  size_t count() const { return pieces.size(); }
  size_t bytes() const {
    size_t sum = 0;
    for (const Entry &piece : pieces)
      sum += piece.second;
    return sum;
  }

private:
  std::map<uint64_t, size_t> pieces;
};

/// What is allocated, and what was.
class Ledger {
public:
  void allocated(uint64_t start, size_t bytes) {
    std::lock_guard lock(mutex);
    released.removeOverlapping(start, bytes);
    live.add(start, bytes);
  }

  /// A release must not fail: what is wrong with it is found by the next check.
  /// False if there is nothing to release.
  bool release(uint64_t start) {
    std::lock_guard lock(mutex);
    const Pieces::Entry *piece = live.find(start);
    if (!piece || piece->first != start) {
      wrongRelease =
          "release of " + addressText(start) + ", which is " + stateText(start);
      return false;
    }
    released.add(start, piece->second);
    return live.remove(start);
  }

  /// Memory of somebody else; pieces of it may overlap.
  void adopted(uint64_t start, size_t bytes) {
    std::lock_guard lock(mutex);
    released.removeOverlapping(start, bytes);
    foreign.emplace(start, bytes);
  }
  void disowned(uint64_t start) {
    std::lock_guard lock(mutex);
    if (auto piece = foreign.find(start); piece != foreign.end())
      foreign.erase(piece);
  }

  /// All of `bytes` at `start` must be allocated; `what` uses them.
  Result<> check(uint64_t start, size_t bytes, const std::string &what) {
    std::lock_guard lock(mutex);
    if (Result<> fine = checkReleases(); !fine)
      return fine;
    const Pieces::Entry *piece = live.find(start);
    if (piece && bytes <= Pieces::endOf(*piece) - start)
      return {};
    for (const Pieces::Entry &one : foreign)
      if (one.first <= start && start + bytes <= Pieces::endOf(one))
        return {};
    return defect(what + " " + std::to_string(bytes) + " bytes at " +
                  addressText(start) + ", which is " +
                  (piece ? "too near the end of " + pieceText(*piece)
                         : stateText(start)));
  }

  /// `word` may be a number, but no address in memory that was released.
  Result<> checkWord(uint64_t word, const std::string &what) {
    std::lock_guard lock(mutex);
    if (Result<> fine = checkReleases(); !fine)
      return fine;
    if (live.find(word) || !released.find(word))
      return {};
    return defect(what + " " + addressText(word) + ", which is " +
                  stateText(word));
  }

  std::string leaksText() {
    std::lock_guard lock(mutex);
    if (live.count() == 0)
      return "";
    return std::to_string(live.count()) + " allocations of " +
           std::to_string(live.bytes()) + " bytes were never released";
  }

private:
  Result<> checkReleases() {
    if (wrongRelease.empty())
      return {};
    return defect(std::exchange(wrongRelease, ""));
  }
  static std::string pieceText(const Pieces::Entry &piece) {
    return "the " + std::to_string(piece.second) + " bytes at " +
           addressText(piece.first);
  }
  std::string stateText(uint64_t address) const {
    if (const Pieces::Entry *piece = live.find(address))
      return "in the middle of " + pieceText(*piece);
    if (const Pieces::Entry *piece = released.find(address))
      return "in " + pieceText(*piece) + ", which were released";
    return "not allocated";
  }

  Mutex mutex;
  Pieces live, released;
  std::multimap<uint64_t, size_t> foreign;
  std::string wrongRelease;
};

class ValidatedSide final : public SideStream {
public:
  ValidatedSide(Driver &driver, Ledger &ledger,
                std::unique_ptr<SideStream> stream)
      : driver(driver), ledger(ledger), real(std::move(stream)) {}

  size_t smallBytes() const override { return real->smallBytes(); }
  Result<> enter(size_t place) override { return real->enter(place); }
  Result<> leave(size_t place) override { return real->leave(place); }
  Result<> save(size_t place, std::byte *to, const std::byte *from,
                size_t bytes) override {
    Result<> fine = check(to, from, bytes);
    return fine ? real->save(place, to, from, bytes) : fine;
  }
  Result<> load(size_t place, std::byte *to, const std::byte *from,
                size_t bytes) override {
    Result<> fine = check(from, to, bytes);
    return fine ? real->load(place, to, from, bytes) : fine;
  }

private:
  Result<> check(const std::byte *host, const std::byte *device, size_t bytes) {
    const std::byte *there = driver.onDevice(const_cast<std::byte *>(host));
    for (const std::byte *start : {there, device})
      if (Result<> fine = ledger.check(reinterpret_cast<uint64_t>(start), bytes,
                                       "a copy beside launches of");
          !fine)
        return fine;
    return {};
  }

  Driver &driver;
  Ledger &ledger;
  const std::unique_ptr<SideStream> real;
};

/// With the number of words that its functions are called with.
struct ValidatedModule final : Module {
  std::shared_ptr<Module> real;
  std::map<std::string, size_t> words;
};

using Check = std::function<Result<>()>;

struct ValidatedCapture final : Captured {
  std::shared_ptr<Captured> real;
  std::vector<Check> checks; ///< what it uses must still be there
};

class ValidatingDriver final : public Driver {
public:
  ValidatingDriver(std::shared_ptr<Driver> driver, ReportDefect report)
      : real(std::move(driver)), report(std::move(report)) {}
  ~ValidatingDriver() override {
    if (std::string leaks = ledger.leaksText(); !leaks.empty())
      report(leaks);
  }

  const Properties &properties() const override { return real->properties(); }
  size_t freeBytes() override { return real->freeBytes(); }
  Result<std::byte *> allocateHost(size_t bytes) override {
    Result<std::byte *> made = real->allocateHost(bytes);
    if (made && bytes)
      ledger.allocated(number(real->onDevice(*made)), bytes);
    return made;
  }
  std::byte *onDevice(std::byte *host) override { return real->onDevice(host); }
  void releaseHost(std::byte *address) override {
    if (ledger.release(number(real->onDevice(address))))
      real->releaseHost(address);
    else
      report("a release of memory of the host that is not allocated");
  }
  Result<std::unique_ptr<SideStream>> openSideStream() override;
  std::shared_ptr<profile::Moment> mark() override { return real->mark(); }
  Counters &counters() override { return real->counters(); }

  Result<std::byte *> allocate(size_t bytes) override {
    Result<std::byte *> made = real->allocate(bytes);
    if (made && bytes)
      ledger.allocated(number(*made), bytes);
    return made;
  }
  void release(std::byte *address) override {
    if (!address || ledger.release(number(address)))
      real->release(address);
    else
      report("a release of memory that is not allocated");
  }

  Result<> adopt(std::byte *address, size_t bytes) override {
    Result<> adopted = real->adopt(address, bytes);
    if (adopted)
      ledger.adopted(number(address), bytes);
    return adopted;
  }
  void disown(std::byte *address, bool waits) override {
    ledger.disowned(number(address));
    real->disown(address, waits);
  }

  Result<> upload(std::byte *to, const void *from, size_t bytes) override {
    Result<> fine = checkRange(to, bytes, "an upload to");
    return fine ? real->upload(to, from, bytes) : fine;
  }
  Result<> download(void *to, const std::byte *from, size_t bytes) override {
    Result<> fine = checkRange(from, bytes, "a download of");
    return fine ? real->download(to, from, bytes) : fine;
  }
  Result<> copy(std::byte *to, const std::byte *from,
                const CopyShape &shape) override {
    if (shape.size() == 0)
      return {};
    if (std::min(shape.toPitch, shape.fromPitch) < shape.bytes)
      return defect("a copy of rows that overlap");
    Result<> fine = checkRange(from, shape.fromSpan(), "a copy of");
    if (fine)
      fine = checkRange(to, shape.toSpan(), "a copy to");
    return fine ? real->copy(to, from, shape) : fine;
  }
  Result<> fill(std::byte *to, size_t bytes, const void *pattern,
                size_t patternBytes) override {
    if (number(to) % patternBytes || bytes % patternBytes)
      return defect("a fill with " + std::to_string(patternBytes) +
                    " bytes at a time of " + std::to_string(bytes) +
                    " bytes at " + addressText(number(to)));
    Result<> fine = checkRange(to, bytes, "a fill of");
    return fine ? real->fill(to, bytes, pattern, patternBytes) : fine;
  }

  Result<std::shared_ptr<Module>> load(const DeviceCode &code) override;
  Result<> prepare(Module &module, const std::string &symbol,
                   size_t sharedBytes) override {
    return real->prepare(*static_cast<ValidatedModule &>(module).real, symbol,
                         sharedBytes);
  }
  Result<> launch(Module &module, const std::string &symbol, Grid grid,
                  std::span<const uint64_t> words, size_t sharedBytes) override;
  Result<int64_t> residentBlocks(Module &module, const std::string &symbol,
                                 int blockThreads,
                                 size_t sharedBytes) override {
    return real->residentBlocks(*static_cast<ValidatedModule &>(module).real,
                                symbol, blockThreads, sharedBytes);
  }
  Result<> synchronize() override { return real->synchronize(); }

  Result<> useStream(std::optional<void *> stream) override {
    return real->useStream(stream);
  }
  Result<bool> letWait(void *stream) override { return real->letWait(stream); }
  Result<> beginCapture() override;
  Result<std::shared_ptr<Captured>> endCapture() override;
  Result<> replay(Captured &captured) override;
  bool beginSeries() override { return real->beginSeries(); }
  Result<> endSeries() override { return real->endSeries(); }
  bool isShared() override { return real->isShared(); }
  Result<MeetingPlace> meetingPlace(int rank) override {
    return real->meetingPlace(rank);
  }
  Result<std::shared_ptr<Ranks>> join(const Meeting &meeting) override {
    return real->join(meeting);
  }

private:
  static uint64_t number(const std::byte *address) {
    return reinterpret_cast<uint64_t>(address);
  }
  /// Now, and whenever what is captured is replayed.
  Result<> check(Check check);
  Result<> checkRange(const std::byte *start, size_t bytes, const char *what);
  Result<> checkGrid(const std::string &what, Grid grid, size_t sharedBytes);
  Result<> checkWords(const std::string &what, std::span<const uint64_t> words);

  const std::shared_ptr<Driver> real;
  const ReportDefect report;
  Ledger ledger;
  std::atomic<std::thread::id> capturer = {};
  std::shared_ptr<ValidatedCapture> capture;
};

Result<> ValidatingDriver::check(Check check) {
  Result<> fine = check();
  if (capturer == std::this_thread::get_id())
    capture->checks.push_back(std::move(check));
  return fine;
}

Result<> ValidatingDriver::checkRange(const std::byte *start, size_t bytes,
                                      const char *what) {
  if (bytes == 0)
    return {};
  return check([=, this] { return ledger.check(number(start), bytes, what); });
}

Result<std::shared_ptr<Module>> ValidatingDriver::load(const DeviceCode &code) {
  Result<std::shared_ptr<Module>> loaded = real->load(code);
  if (!loaded)
    return loaded;
  auto module = std::make_shared<ValidatedModule>();
  module->real = *loaded;
  for (const DeviceFunction &function : code.functions)
    for (const std::string &symbol :
         {function.symbol, function.measure, function.sharedSymbol,
          function.drainSymbol, function.sortSymbol})
      module->words[symbol] = static_cast<size_t>(function.words);
  return std::shared_ptr<Module>(module);
}

Result<> ValidatingDriver::checkGrid(const std::string &what, Grid grid,
                                     size_t sharedBytes) {
  if (grid.blocks < 0 || grid.blockThreads < 1 ||
      grid.blockThreads > properties().blockThreads)
    return defect(what + " in " + std::to_string(grid.blocks) + " blocks of " +
                  std::to_string(grid.blockThreads) + " threads");
  if (sharedBytes > properties().sharedPerBlock)
    return defect(what + " with " + std::to_string(sharedBytes) +
                  " bytes of shared memory");
  return {};
}

/// The first words have a meaning; those after may be numbers.
Result<> ValidatingDriver::checkWords(const std::string &what,
                                      std::span<const uint64_t> words) {
  for (size_t word : {TapeBaseWord, PartialsWord, TicketWord, FrameWord,
                      ErrorsWord, NeedWord})
    if (word < words.size() && words[word])
      if (Result<> fine = ledger.check(words[word], 8, what + " with"); !fine)
        return fine;
  for (uint64_t word :
       words.subspan(std::min<size_t>(firstOwnWord, words.size())))
    if (Result<> fine = ledger.checkWord(word, what + " with"); !fine)
      return fine;
  return {};
}

Result<> ValidatingDriver::launch(Module &module, const std::string &symbol,
                                  Grid grid, std::span<const uint64_t> words,
                                  size_t sharedBytes) {
  auto &validated = static_cast<ValidatedModule &>(module);
  std::string what = "a launch of `" + symbol + "`";
  auto known = validated.words.find(symbol);
  if (known == validated.words.end())
    return defect(what + ", which its module does not have");
  if (words.size() != known->second)
    return defect(what + " with " + std::to_string(words.size()) +
                  " words instead of " + std::to_string(known->second));
  Result<> fine = checkGrid(what, grid, sharedBytes);
  if (fine)
    fine = check([=, this, kept = std::vector(words.begin(), words.end())] {
      return checkWords(what, kept);
    });
  return fine ? real->launch(*validated.real, symbol, grid, words, sharedBytes)
              : fine;
}

Result<std::unique_ptr<SideStream>> ValidatingDriver::openSideStream() {
  Result<std::unique_ptr<SideStream>> made = real->openSideStream();
  if (!made || !*made)
    return made;
  return std::unique_ptr<SideStream>(
      std::make_unique<ValidatedSide>(*real, ledger, std::move(*made)));
}

Result<> ValidatingDriver::beginCapture() {
  if (capturer != std::thread::id())
    return defect("a graph is captured already");
  Result<> begun = real->beginCapture();
  if (!begun)
    return begun;
  capture = std::make_shared<ValidatedCapture>();
  capturer = std::this_thread::get_id();
  return {};
}

Result<std::shared_ptr<Captured>> ValidatingDriver::endCapture() {
  if (capturer != std::this_thread::get_id())
    return defect("the end of a graph that this thread does not capture");
  capturer = std::thread::id();
  Result<std::shared_ptr<Captured>> captured = real->endCapture();
  if (!captured)
    return captured;
  capture->real = *captured;
  return std::shared_ptr<Captured>(std::move(capture));
}

Result<> ValidatingDriver::replay(Captured &captured) {
  auto &validated = static_cast<ValidatedCapture &>(captured);
  for (const Check &check : validated.checks)
    if (Result<> fine = check(); !fine)
      return Failure{fine.error().code, "a graph: " + fine.error().text};
  return real->replay(*validated.real);
}

} // namespace

void printDefect(const std::string &text) {
  std::fprintf(stderr, "costate: validation: %s\n", text.c_str());
}

std::shared_ptr<Driver> validating(std::shared_ptr<Driver> driver,
                                   ReportDefect report) {
  return std::make_shared<ValidatingDriver>(std::move(driver),
                                            std::move(report));
}

} // namespace costate::runtime::gpu
