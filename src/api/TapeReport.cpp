/// What a recording holds, for people.

#include "api/TapeImpl.h"
#include "runtime/Text.h"

#include <algorithm>
#include <array>
#include <map>
#include <ostream>
#include <unordered_map>

using namespace costate;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::VersionLog;

static std::string arrayText(const ArrayStorage &array) {
  if (array.form.count)
    return "array of " + contentsText(array);
  return std::string(nameOf(array.dtype)) + " array of shape " +
         runtime::shapeText(array.extents);
}

static std::string elementsText(const VersionLog::Copy &copy) {
  const ArrayStorage &array = *copy.array;
  if (copy.size() == array.size)
    return arrayText(array);
  std::string parts;
  for (const runtime::Box &box : copy.elements)
    parts += (parts.empty() ? "" : " and ") + runtime::boxText(box);
  return "elements " + parts + " of an " + arrayText(array);
}

namespace {
/// Who looks at a copy.
class Readers {
public:
  explicit Readers(const TapeImpl &tape) : tape(tape) {
    for (size_t e = 0; e < tape.entries.size(); ++e)
      for (const Want &want : tape.entries[e]->wants) {
        auto &array = tape.entries[e]->arguments[want.argument].array;
        wants[array->identity].push_back({&want, e});
      }
  }

  /// The last entry that needs `copy`: the first whose gradient looks at it.
  std::string firstOf(const VersionLog::Copy &copy) const {
    auto known = wants.find(copy.array->identity);
    if (known == wants.end())
      return failed;
    const std::vector<Reader> &all = known->second;
    auto reader = std::upper_bound(
        all.begin(), all.end(), copy.time,
        [](uint64_t time, const Reader &one) { return time < one.want->time; });
    while (reader != all.begin()) {
      --reader;
      if (copy.meets(reader->want->elements))
        return tape.entries[reader->entry]->argumentText(
                   reader->want->argument) +
               " of " + tape.entryText(reader->entry);
    }
    return failed;
  }

private:
  struct Reader {
    const Want *want;
    size_t entry;
  };
  static constexpr const char *failed = "a launch that has failed";
  const TapeImpl &tape;
  /// By the identity of the array, in the order of time.
  std::unordered_map<uint64_t, std::vector<Reader>> wants;
};
} // namespace

/// What entry `e` itself has overwritten.
static void addVersions(const TapeImpl &tape, size_t e, TapeReport &report) {
  const TapeEntry &entry = *tape.entries[e];
  for (const auto &[parameter, buffer] : entry.overwritten().all())
    report.copies.push_back(
        {arrayText(*entry.arguments[parameter.argument].array),
         entry.argumentText(parameter.argument) + " of " + tape.entryText(e),
         tape.entryText(e), buffer.bytes});
}

TapeReport detail::reportOf(const TapeImpl &tape) {
  TapeReport report;
  report.entries = tape.entries.size();
  report.bytes = tape.log.bytes();
  report.peak_bytes = tape.log.peakBytes();
  Readers readers(tape);
  for (const VersionLog::Copy *copy : tape.log.copies())
    if (copy->loss == VersionLog::Loss::None)
      report.copies.push_back({elementsText(*copy), readers.firstOf(*copy),
                               tape.writerText(*copy), copy->values.bytes});
  for (size_t e = 0; e < tape.entries.size(); ++e)
    addVersions(tape, e, report);
  if (tape.checkpoints)
    tape.checkpoints->addTo(report, tape);
  return report;
}

static void addCheckpoints(std::ostream &out, const TapeReport &report) {
  using runtime::bytesText;
  out << "  steps      " << report.steps << ", of which `backward` runs "
      << report.steps_again << " again\n  snapshots  " << report.snapshots_taken
      << " of at most " << report.snapshots << ", the largest of "
      << bytesText(report.snapshot_bytes) << "\n";
  if (report.budget)
    out << "  budget     " << bytesText(report.budget) << "\n";
  for (const TapeReport::Kept &kept : report.kept)
    out << "  " << bytesText(kept.bytes) << ": what " << kept.entry
        << " found or wrote is kept, because " << kept.why << "\n";
}

namespace {
/// Copies that differ by their entries only.
struct Alike {
  TapeReport::Copy first;
  size_t count = 0, bytes = 0;
};
} // namespace

/// What is said of an entry but for its number.
static std::string withoutEntry(const std::string &text) {
  return text.substr(0, text.rfind(" (entry "));
}

static std::vector<Alike> alike(const std::vector<TapeReport::Copy> &copies) {
  std::vector<Alike> groups;
  std::map<std::array<std::string, 3>, size_t> positions;
  for (const TapeReport::Copy &copy : copies) {
    auto [known, isNew] =
        positions.try_emplace({copy.array, withoutEntry(copy.needed_by),
                               withoutEntry(copy.overwritten_by)},
                              groups.size());
    if (isNew)
      groups.push_back({copy});
    Alike &group = groups[known->second];
    ++group.count;
    group.bytes += copy.bytes;
  }
  return groups;
}

static void add(std::ostream &out, const Alike &group) {
  const TapeReport::Copy &first = group.first;
  const bool isOne = group.count == 1;
  auto text = [&](const std::string &entry) {
    return isOne ? entry : withoutEntry(entry) + " and others like it";
  };
  out << "  " << runtime::bytesText(group.bytes) << ": " << first.array;
  if (!isOne)
    out << ", " << group.count << " times";
  out << "\n    needed by " << text(first.needed_by) << "\n    overwritten by "
      << text(first.overwritten_by) << "\n";
}

std::ostream &costate::operator<<(std::ostream &out, const TapeReport &report) {
  out << "recording: " << report.entries << " entries, " << report.copies.size()
      << " copies, " << runtime::bytesText(report.bytes) << " (at most "
      << runtime::bytesText(report.peak_bytes) << ")\n";
  if (report.snapshots)
    addCheckpoints(out, report);
  for (const Alike &group : alike(report.copies))
    add(out, group);
  return out;
}
