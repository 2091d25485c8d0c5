#include "api/TapeEntry.h"

#include "api/AccessSet.h"
#include "api/Checked.h"
#include "runtime/ArrayRows.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::Box;
using runtime::VersionLog;

std::string TapeEntry::argumentText(size_t argument) const {
  return "argument " + std::to_string(argument + 1);
}

void TapeEntry::begin(VersionLog *log) {
  for (TapeArgument &argument : arguments)
    if (argument.array)
      argument.before = argument.array->version.load();
  wantBefore(log);
}

void TapeEntry::end(VersionLog *log) {
  for (TapeArgument &argument : arguments)
    if (argument.array)
      argument.after = argument.array->version.load();
  over = log ? log->tick() : 1;
  added = {};
  wantAfter(log);
}

void TapeEntry::forEachUse(const Visit &visit) const {
  for (const TapeArgument &argument : arguments) {
    if (!argument.array || argument.array->isCompanion)
      continue;
    Box all = Box::whole(argument.array->extents);
    bool isWritten = argument.written || argument.replaced;
    visit(argument.array, isWritten ? &all : nullptr);
  }
}

void TapeEntry::keepResults(
    ContentsPlace &place,
    const std::function<bool(const ArrayStorage &)> &again) {
  forEachUse([&](const std::shared_ptr<ArrayStorage> &array, const Box *box) {
    if (box && again(*array))
      results.keep(array, *box, place);
  });
}

void TapeEntry::repeat() {
  found.put();
  obstacle().empty() ? runAgain() : results.put();
}

void TapeEntry::record(VersionLog &log, bool runs) {
  found.put();
  wants.clear();
  over = 0;
  wantBefore(&log);
  if (runs)
    obstacle().empty() ? runToKeep(log) : results.put();
  over = log.tick();
  added = {};
  wantAfter(&log);
}

void TapeEntry::abandon(VersionLog &log) const {
  for (size_t i = 0; i < wants.size(); ++i)
    log.drop(*arguments[wants[i].argument].array, added[i]);
}

void TapeEntry::want(VersionLog *log, size_t argument, Box elements,
                     bool inPlace, bool optional) {
  runtime::Region *fresh = over ? nullptr : &added.emplace_back();
  uint64_t time =
      log ? log->want(arguments[argument].array, elements, fresh, optional) : 0;
  wants.push_back({argument, std::move(elements), time, inPlace, optional});
}

void TapeEntry::rewind(const Reversing &with, const Want &want) const {
  checked(with.log.rewind(*arguments[want.argument].array,
                          want.inPlace ? want.time : over));
}

const VersionArrays &TapeEntry::overwritten() const {
  static const VersionArrays none;
  return none;
}

std::string detail::reverserText() { return "`backward` of a `Tape`"; }

void detail::fillGradient(ArrayStorage &gradient, double value) {
  fillGradient(gradient, value, Box::whole(gradient.extents));
}

void detail::fillGradient(ArrayStorage &gradient, double value,
                          const Box &elements) {
  float narrow = static_cast<float>(value);
  const void *pattern = gradient.dtype == DType::F32
                            ? static_cast<const void *>(&narrow)
                            : static_cast<const void *>(&value);
  SingleUse write(gradient, &elements, [](Loc) { return reverserText(); });
  write.tellWatchers();
  write.countWrites();
  const size_t width = sizeOf(gradient.dtype);
  auto fill = [&](int64_t first, int64_t count) {
    runtime::Buffer run{gradient.buffer.address +
                            static_cast<size_t>(first) * width,
                        static_cast<size_t>(count) * width};
    checked(gradient.fill(run, pattern, width));
  };
  runtime::forEachRuns(elements, gradient.extents,
                       [&](const runtime::Runs &runs) {
                         for (int64_t k = 0; k < runs.count; ++k)
                           fill(runs.first + k * runs.pitch, runs.length);
                       });
}

std::string detail::hostWriteText(Loc loc) {
  return "a write by the host" + sourceText(loc);
}

HostWriteEntry::HostWriteEntry(std::shared_ptr<ArrayStorage> array, Box written,
                               Loc loc)
    : elements(std::move(written)), loc(loc) {
  uint64_t version = array->version.load();
  bool replaced = elements.size() == array->size;
  arguments.push_back({std::move(array), false, true, replaced, version - 1});
}

void HostWriteEntry::keep(std::span<const std::byte> contents) {
  const size_t width = sizeOf(arguments[0].array->dtype);
  const bool isOne = contents.size() > width &&
                     std::equal(contents.begin() + static_cast<long>(width),
                                contents.end(), contents.begin());
  contents = isOne ? contents.first(width) : contents;
  values.assign(contents.begin(), contents.end());
}

void HostWriteEntry::forEachUse(const Visit &visit) const {
  if (!arguments[0].array->isCompanion)
    visit(arguments[0].array, first ? nullptr : &elements);
}

std::string HostWriteEntry::title() const { return hostWriteText(loc); }

void HostWriteEntry::reverse(const Reversing &) const {
  if (arguments[0].array->grad)
    fillGradient(*arguments[0].array->grad, 0, elements);
}

void HostWriteEntry::runAgain() {
  ArrayStorage &array = *arguments[0].array;
  if (first || array.isCompanion)
    return;
  SingleUse write(array, &elements, hostWriteText, loc);
  write.tellWatchers();
  write.countWrites();
  const size_t width = sizeOf(array.dtype);
  const bool isOne = values.size() == width;
  checked(runtime::forEachPiece(
      array, {&elements, 1}, const_cast<std::byte *>(values.data()),
      array.buffer.address, [&](runtime::Rows rows, runtime::Rows packed) {
        Result<> done;
        for (size_t k = 0; done && k < rows.count; ++k) {
          runtime::Buffer part{rows.address + k * rows.pitch, rows.bytes};
          done = isOne ? array.device->fill(part, values.data(), width)
                       : array.device->upload(part, packed.address +
                                                        k * packed.pitch);
        }
        return done;
      }));
}
