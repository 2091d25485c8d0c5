/// What a kernel is made of, for people.

#include "api/KernelImpl.h"
#include "cache/Store.h"
#include "runtime/Text.h"

#include <algorithm>
#include <array>
#include <cstdio>

using namespace costate;
using namespace costate::detail;
using runtime::KernelCode;
using runtime::LineCost;

static std::string listText(const std::vector<bool> &chosen) {
  std::string text;
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i])
      text += (text.empty() ? "" : ", ") + std::to_string(i + 1);
  return text;
}

/// "gradient, its tangent with respect to arguments 1, 3"
static std::string modeText(const compiler::Derivation &derivation) {
  bool isGradient = derivation.mode == compiler::Mode::Gradient;
  bool isRecording = derivation.mode == compiler::Mode::Recording;
  bool isCheck = derivation.mode == compiler::Mode::Check;
  std::string text = isGradient         ? "gradient"
                     : isRecording      ? "recording primal"
                     : isCheck          ? "check of memory for the gradient"
                     : derivation.order ? "tangent"
                                        : "primal";
  bool isPrimal = !isGradient && !isRecording && !isCheck;
  std::string with =
      listText(isPrimal ? derivation.tangent : derivation.adjoint);
  if (!with.empty())
    text += " with respect to arguments " + with;
  if (isGradient && derivation.order)
    text += ", its tangent along arguments " + listText(derivation.tangent);
  if (derivation.order > 1)
    text += ", to order " + std::to_string(derivation.order);
  if (derivation.lanes == 1)
    text += ", without lanes";
  if (derivation.byBudget)
    text += ", within the tape budget";
  if (derivation.fromMemory)
    text += ", from memory without versions";
  if (derivation.directions)
    text += ", in " + std::to_string(derivation.directions) + " directions";
  return text;
}

namespace {
/// Rows of text, the first column to the left and numbers to the right.
class Table {
public:
  using Row = std::array<std::string, 4>;

  void add(Row row) { rows.push_back(std::move(row)); }

  std::string text() const {
    std::array<size_t, 4> widths{};
    for (const Row &row : rows)
      for (size_t c = 0; c < row.size(); ++c)
        widths[c] = std::max(widths[c], row[c].size());
    std::string text;
    for (const Row &row : rows) {
      text += "   ";
      for (size_t c = 0; c < row.size(); ++c) {
        std::string pad(widths[c] - row[c].size(), ' ');
        text += c < 2 ? " " + row[c] + pad + " " : " " + pad + row[c] + " ";
      }
      text.erase(text.find_last_not_of(' ') + 1);
      text += "\n";
    }
    return text;
  }

private:
  std::vector<Row> rows;
};
} // namespace

static std::string countText(int64_t count) {
  return count ? std::to_string(count) : "-";
}

/// `8 bytes + 1 bit (condition), each iteration of line 12`
static std::string savedText(const LineCost &line) {
  std::string text;
  if (line.savedBits >= 8)
    text = runtime::bytesText(line.savedBits / 8);
  if (int64_t bits = line.savedBits % 8)
    text += (text.empty() ? "" : " + ") + std::to_string(bits) +
            (bits == 1 ? " bit" : " bits");
  if (line.condition || line.tripCount)
    text += std::string(" (") + (line.condition ? "condition" : "") +
            (line.condition && line.tripCount ? ", " : "") +
            (line.tripCount ? "trip count" : "") + ")";
  if (text.empty())
    return "-";
  if (line.loopAbove >= 0)
    text += ", each iteration of line " +
            std::to_string(line.line - line.loopAbove);
  return text;
}

static std::string placeText(const LineCost &line) {
  return line.file.substr(line.file.rfind('/') + 1) + ":" +
         std::to_string(line.line);
}

static std::string costText(const KernelCode &code) {
  if (code.lines.empty())
    return "    nothing is saved or computed again\n";
  Table table;
  table.add({"line", "saves each time", "computes again", "loads again"});
  int64_t computed = 0, loaded = 0;
  for (const LineCost &line : code.lines) {
    std::string saved = savedText(line);
    if (saved == "-" && !line.computed && !line.loaded)
      continue; // a loop, see loopsText
    table.add({placeText(line), saved, countText(line.computed),
               countText(line.loaded)});
    computed += line.computed;
    loaded += line.loaded;
  }
  table.add({"all", runtime::bytesText(code.recordBytes), countText(computed),
             countText(loaded)});
  return table.text();
}

/// `    loop.py:12: runs again from at most 100 checkpoints of 8 bytes; an
/// iteration saves 16 bytes`, or `    loop.py:12: keeps all iterations, of 16
/// bytes each`, for each loop that saves something.
static std::string loopsText(const KernelCode &code) {
  std::string text;
  for (const LineCost &line : code.lines) {
    if (line.staysWhole)
      text += "    " + placeText(line) +
              ": saves all iterations: on a GPU `checkpoints` holds in one "
              "loop of a nest, and in none with a loop in its condition\n";
    else if (line.keepsAll && !line.runsAgain)
      text += "    " + placeText(line) + ": keeps all iterations, of " +
              runtime::bytesText(line.iterationBytes) + " each\n";
    if (line.runsAgain)
      text +=
          "    " + placeText(line) + ": runs again from " +
          (line.checkpoints
               ? "at most " + std::to_string(line.checkpoints) + " checkpoints"
               : "checkpoints, as many as the tape budget asks for,") +
          " of " + runtime::bytesText(line.stateBytes) +
          "; an iteration saves " + runtime::bytesText(line.iterationBytes) +
          "\n";
  }
  return text;
}

/// The versions of arrays that a recorded launch keeps for this gradient.
static std::string versionText(const Compiled &compiled) {
  std::string arguments;
  for (const runtime::Parameter &parameter : compiled.code->parameters)
    if (parameter.role == runtime::Parameter::Role::Version &&
        parameter.order == 0) {
      std::string name =
          runtime::argumentText(*compiled.code, parameter.argument);
      constexpr std::string_view usual = "argument ";
      if (name.starts_with(usual))
        name.erase(0, usual.size());
      arguments += (arguments.empty() ? "" : ", ") + name;
    }
  if (arguments.empty())
    return "";
  return "    copies of arguments, from before they are overwritten: " +
         arguments + "; " + runtime::bytesText(compiled.versionBytes.load()) +
         " in the last launch\n";
}

static std::string rangeText(const KernelCode &code, int64_t site) {
  if (site < 0 || static_cast<size_t>(site) >= code.sites.size())
    return "a range";
  const Loc &loc = code.sites[site];
  return placeText(LineCost{.file = loc.file, .line = loc.line});
}

/// `    loop.py:12: its tape is counted before it runs, because it has private
/// arrays`, for each part of the code of a GPU that needs it.
static std::string measuredText(const KernelCode &code) {
  std::string text;
  if (code.device)
    for (const runtime::gpu::DeviceFunction &function : code.device->functions)
      if (function.pushes && function.needWord < 0)
        text += "    " + rangeText(code, function.tapeSite) + ": its tape is " +
                (function.dryRun ? "measured by a run of the forward sweep"
                                 : "counted before it runs") +
                ", because " + function.obstacle +
                (function.dryRun
                     ? ", and what its iterations follow from is overwritten"
                     : "") +
                "\n";
  return text;
}

/// Of a GPU.
static std::string allTapesText(const Compiled &compiled) {
  size_t bytes = compiled.allTapeBytes.load();
  return bytes ? "    all tapes of the last launch: " +
                     runtime::bytesText(bytes) + "\n"
               : "";
}

/// What the user has set.
static std::string budgetText(const Compiled &compiled) {
  size_t bytes = compiled.tapeBudget.load();
  return bytes ? "    budget for tapes: " + runtime::bytesText(bytes) + "\n"
               : "";
}

static std::string gradientText(const Compiled &compiled) {
  return costText(*compiled.code) + loopsText(*compiled.code) +
         measuredText(*compiled.code) +
         "    largest tape of the last launch: " +
         runtime::bytesText(compiled.tapeBytes.load()) + "\n" +
         allTapesText(compiled) + budgetText(compiled) + versionText(compiled);
}

/// `    springs.py:12: 16 work items at a time, as lanes`, for each range.
static std::string lanesText(const KernelCode &code) {
  std::string text;
  for (const runtime::RangeLanes &range : code.ranges) {
    text +=
        "    " + rangeText(code, range.site) + ": " +
        (range.lanes > 1
             ? std::to_string(range.lanes) + " work items at a time, as lanes" +
                   (range.remark.empty() ? "" : " " + range.remark)
             : "no lanes: " + range.remark) +
        (range.additions.empty() ? "" : "; " + range.additions) + "\n";
  }
  return text;
}

static std::string codeText(const compiler::Derivation &derivation,
                            const Compiled &compiled) {
  char time[32];
  std::snprintf(time, sizeof time, "%.1f ms", compiled.milliseconds);
  std::string text =
      "  " + modeText(derivation) +
      (compiled.code->isLoaded ? ": from the cache in " : ": compiled in ") +
      time + ", " + runtime::bytesText(compiled.code->objectBytes) + "\n" +
      lanesText(*compiled.code);
  bool isGradient = derivation.mode == compiler::Mode::Gradient;
  return isGradient ? text + gradientText(compiled) : text;
}

std::string KernelImpl::report() {
  std::string text = title() + "\n  arguments: ";
  const std::vector<syntax::Argument> &arguments = program->arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i ? ", " : "") + typeText(arguments[i]);
  text += "\n";
  std::lock_guard lock(mutex);
  for (auto &[key, compiled] : codes) {
    std::lock_guard entryLock(compiled.mutex);
    if (compiled.code)
      text += codeText(key, compiled);
  }
  if (cache && !cache->problem().empty())
    text += "  not all is kept for other processes: " + cache->problem() + "\n";
  return text;
}
