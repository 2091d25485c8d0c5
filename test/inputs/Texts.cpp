#include "inputs/Texts.h"

#include "SourceTree.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace costate::inputs {

namespace {

namespace fs = std::filesystem;

std::string read(const fs::path &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The kernels of a file, each with its body and nothing else.
void addKernels(const std::string &file, std::vector<std::string> &kernels) {
  std::istringstream lines(file);
  std::string kernel;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("costate.kernel"))
      kernel.clear();
    else if (kernel.empty())
      continue;
    kernel += line + "\n";
    if (line.starts_with("}")) {
      kernels.push_back(kernel);
      kernel.clear();
    }
  }
}

bool isName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ||
         c == '$';
}

size_t endOfToken(const std::string &text, size_t at) {
  char first = text[at];
  size_t end = at + 1;
  if (first == '"') {
    end = text.find('"', end);
    return end == text.npos ? text.size() : end + 1;
  }
  auto while_ = [&](auto test) {
    while (end < text.size() && test(text[end]))
      ++end;
    return end;
  };
  if (std::isspace(static_cast<unsigned char>(first)))
    return while_([](char c) {
      return bool(std::isspace(static_cast<unsigned char>(c)));
    });
  bool hasName = isName(first) || first == '%' || first == '@' ||
                 first == '!' || first == '^' || first == '#';
  return hasName ? while_(isName) : end;
}

} // namespace

const std::vector<std::string> &corpus() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> kernels;
    std::vector<fs::path> files;
    for (const char *folder : {"src", "test"})
      for (const auto &entry :
           fs::recursive_directory_iterator(test::inSourceTree(folder)))
        if (entry.path().extension() == ".mlir")
          files.push_back(entry.path());
    std::ranges::sort(files); // the same order everywhere
    for (const fs::path &path : files)
      addKernels(read(path), kernels);
    return kernels;
  }();
  return all;
}

std::vector<std::string> tokensOf(const std::string &text) {
  std::vector<std::string> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = endOfToken(text, at);
    tokens.push_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

namespace {

const std::vector<std::string> strangeNumbers = {
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "63",
    "64",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999999",
    "1e308",
    "1e999999",
    "-1.0e-999999",
    "0x7FF0000000000000",
    "0x7FF8000000000001",
    "0xFF",
    "0x",
    "1.",
    ".5",
    "1e",
    "true",
    "unit",
    "dense<1>",
    "0.0",
    "1.5"};

const std::vector<std::string> strangeTypes = {
    "i1",
    "i8",
    "i32",
    "i64",
    "i128",
    "ui32",
    "si64",
    "i16777215",
    "i16777216",
    "i99999999999",
    "index",
    "f16",
    "bf16",
    "f32",
    "f64",
    "f80",
    "f128",
    "tf32",
    "none",
    "complex<f64>",
    "vector<4xf64>",
    "vector<[4]xf64>",
    "vector<0xf64>",
    "tensor<?xf64>",
    "tensor<4x4xf64>",
    "memref<4xf64>",
    "tuple<f64, i1>",
    "(f64) -> f64",
    "() -> ()",
    "!costate.array<f64, 0>",
    "!costate.array<f64, 1>",
    "!costate.array<f64, 8>",
    "!costate.array<f64, 9>",
    "!costate.array<f64, -1>",
    "!costate.array<f64, 4294967297>",
    "!costate.array<i8, 1>",
    "!costate.array<ui64, 1>",
    "!costate.array<i1, 2>",
    "!costate.array<!costate.array<f64, 1>, 1>",
    "!costate.array<f64>",
    "!costate.array",
    "!costate.none",
    "!tape.x",
    "!llvm.ptr",
    "!x",
    "affine_map<(i) -> (i)>",
    "opaque<\"x\", \"y\">"};

const std::vector<std::string> operations = {
    "arith.addf",
    "arith.addi",
    "arith.mulf",
    "arith.divsi",
    "arith.shli",
    "arith.select",
    "arith.cmpf oeq,",
    "arith.cmpi slt,",
    "arith.constant",
    "arith.extf",
    "arith.index_cast",
    "arith.bitcast",
    "arith.maximumf",
    "arith.fptosi",
    "arith.addui_extended",
    "math.sin",
    "math.powf",
    "math.fma",
    "math.ipowi",
    "math.fpowi",
    "math.sincos",
    "math.isinf",
    "math.clampf",
    "math.ctlz",
    "math.cttz",
    "math.roundeven",
    "scf.if",
    "scf.for",
    "scf.while",
    "scf.yield",
    "scf.condition",
    "scf.execute_region",
    "scf.index_switch",
    "scf.parallel",
    "scf.forall",
    "scf.reduce",
    "costate.range",
    "costate.load",
    "costate.store",
    "costate.atomic_add",
    "costate.extent",
    "costate.copy",
    "costate.div unsigned",
    "costate.shr",
    "costate.to_int",
    "costate.trip_count",
    "costate.strong_mul symmetric",
    "costate.hypot",
    "costate.kernel",
    "costate.return",
    "costate.yield",
    "costate.check_finite",
    "costate.check_element",
    "tape.push",
    "tape.pop",
    "tape.pivot",
    "tape.push record(0)",
    "tape.pop record(0)",
    "builtin.module",
    "builtin.unrealized_conversion_cast",
    "func.call",
    "llvm.call",
    "cf.br",
    "\"arith.addf\"",
    "\"costate.store\"",
    "\"costate.kernel\"",
    "\"x.y\""};

const std::vector<std::string> attributes = {
    " {costate.adjoint_of = 0}",
    " {costate.adjoint_of = 99}",
    " {costate.tangent_of = -1}",
    " {costate.version_of = 0 : i64}",
    " {costate.scratch_of = 1 : i32}",
    " {costate.part = 4294967296 : i64}",
    " {costate.watched = \"store\"}",
    " {costate.watched = 1}",
    " {exclusive}",
    " {isUnsigned}",
    " {record = -5 : i64}",
    " {dim = 99 : i64}",
    " {a = #x.y, b = [1, 2.0], c = @s::@t}",
    " {costate.adjoint_of = \"x\"}",
    " loc(\"f.cpp\":1:2)",
    " loc(unknown)",
    " attributes {x}",
    " {function_type = () -> ()}",
    " {sym_name = 1}"};

/// Damages one text.
class Damage {
public:
  Damage(uint64_t seed) : engine(seed) {
    text = pick(corpus());
    tokens = tokensOf(text);
  }

  std::string run() {
    for (int count = 1 + below(4); count > 0 && !tokens.empty(); --count)
      once();
    std::string result = joined();
    if (chance(5))
      result.resize(below(result.size() + 1));
    if (chance(5))
      scatterBytes(result);
    if (chance(1))
      result.insert(0, "ML\xefR\r"); // looks like bytecode
    return result;
  }

private:
  size_t below(size_t n) { return n ? engine() % n : 0; }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class T> const T &pick(const std::vector<T> &from) {
    return from[below(from.size())];
  }

  std::string joined() const {
    std::string all;
    for (const std::string &token : tokens)
      all += token;
    return all;
  }

  /// A place that is no white space, mostly.
  size_t place() {
    size_t at = below(tokens.size());
    for (int tries = 0; tries < 4 && isspace(tokens[at][0]); ++tries)
      at = below(tokens.size());
    return at;
  }

  static int kindOf(const std::string &token) {
    unsigned char first = token[0];
    if (first == '%' || first == '@' || first == '!' || first == '^')
      return first;
    if (isdigit(first))
      return '0';
    if (isalpha(first))
      return token.find('.') == token.npos ? 'a' : '.';
    return ' ';
  }

  /// Another token of the same kind, from this text or from another.
  std::string other(const std::string &token) {
    std::vector<std::string> same;
    std::vector<std::string> from =
        chance(70) ? tokens : tokensOf(pick(corpus()));
    for (const std::string &candidate : from)
      if (kindOf(candidate) == kindOf(token) && candidate != token)
        same.push_back(candidate);
    return same.empty() ? pick(from) : pick(same);
  }

  std::string strange(const std::string &token) {
    switch (kindOf(token)) {
    case '0':
      return pick(strangeNumbers);
    case '.':
      return pick(operations);
    case '!':
    case 'a':
      return pick(strangeTypes);
    default:
      return other(token);
    }
  }

  void once() {
    size_t at = place();
    switch (below(13)) {
    case 0:
      tokens.erase(tokens.begin() + long(at));
      return;
    case 1:
      tokens.insert(tokens.begin() + long(at), tokens[at]);
      return;
    case 2:
      std::swap(tokens[at], tokens[place()]);
      return;
    case 3:
    case 4:
    case 5:
      tokens[at] = other(tokens[at]);
      return;
    case 6:
    case 7:
    case 8:
      tokens[at] = strange(tokens[at]);
      return;
    case 9:
      tokens.insert(tokens.begin() + long(at), pick(attributes));
      return;
    case 10:
      return wrap();
    default:
      return changeLine();
    }
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::istringstream stream(joined());
    for (std::string line; std::getline(stream, line);)
      all.push_back(line + "\n");
    return all;
  }

  void setLines(const std::vector<std::string> &all) {
    std::string whole;
    for (const std::string &line : all)
      whole += line;
    tokens = tokensOf(whole);
  }

  /// Removes, repeats, moves a line, or takes one from elsewhere.
  void changeLine() {
    std::vector<std::string> all = lines();
    if (all.empty())
      return;
    size_t at = below(all.size()), to = below(all.size());
    std::string line = all[at];
    switch (below(4)) {
    case 0:
      all.erase(all.begin() + long(at));
      break;
    case 1:
      all.insert(all.begin() + long(to), line);
      break;
    case 2:
      std::swap(all[at], all[to]);
      break;
    default: {
      std::istringstream stream(pick(corpus()));
      std::vector<std::string> foreign;
      for (std::string other; std::getline(stream, other);)
        foreign.push_back(other + "\n");
      all.insert(all.begin() + long(to), pick(foreign));
    }
    }
    setLines(all);
  }

  /// Something around a line, many times over now and then.
  void wrap() {
    static const std::vector<std::pair<std::string, std::string>> around = {
        {"scf.if %c {\n", "}\n"},
        {"scf.execute_region {\n", "scf.yield\n}\n"},
        {"costate.range (%r) in (%n) {\n", "}\n"},
        {"module {\n", "}\n"},
        {"%q = arith.constant true\nscf.if %q {\n", "} else {\n}\n"},
        {"(", ")"},
        {"{a = [", "]}"},
        {"tuple<", ">"}};
    std::vector<std::string> all = lines();
    if (all.empty())
      return;
    auto &[open, close] = pick(around);
    size_t at = below(all.size());
    size_t times = chance(10) ? 20000 : chance(30) ? 100 : 1;
    std::string line = all[at];
    for (size_t k = 0; k < times; ++k)
      all[at].insert(0, open);
    for (size_t k = 0; k < times; ++k)
      all[at] += close;
    setLines(all);
  }

  void scatterBytes(std::string &result) {
    for (size_t count = 1 + below(5); count > 0 && !result.empty(); --count)
      result[below(result.size())] = static_cast<char>(below(256));
  }

  std::mt19937_64 engine;
  std::string text;
  std::vector<std::string> tokens;
};

} // namespace

std::string damagedText(uint64_t seed) { return Damage(seed).run(); }

} // namespace costate::inputs
