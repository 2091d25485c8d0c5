#include "inputs/Files.h"

#include <random>
#include <vector>

namespace costate::inputs {
namespace {

using Words = std::vector<std::string>;

class Choices {
public:
  explicit Choices(uint64_t seed) : engine(seed) {}

  size_t below(size_t n) { return n ? engine() % n : 0; }
  bool chance(unsigned percent) { return below(100) < percent; }
  const std::string &pick(const Words &from) {
    return from[below(from.size())];
  }

  /// Now and then removes, repeats or changes some bytes.
  void damage(std::string &text) {
    for (; !text.empty() && chance(40);) {
      size_t at = below(text.size()), count = 1 + below(4);
      switch (below(4)) {
      case 0:
        text.erase(at, count);
        break;
      case 1:
        text.insert(at, text.substr(at, count));
        break;
      case 2:
        text[at] = static_cast<char>(below(256));
        break;
      default:
        text.resize(at);
      }
    }
  }

private:
  std::mt19937_64 engine;
};

const Words extents = {"0",
                       "1",
                       "2",
                       "3",
                       "4",
                       "-1",
                       "99999999999",
                       "9223372036854775807",
                       "9223372036854775808",
                       "99999999999999999999999",
                       "1099511627776",
                       "",
                       " ",
                       "x",
                       "1.5",
                       "0x2",
                       "1e3"};

std::string shapeOf(Choices &choices, const char *open, const char *close) {
  std::string shape = open;
  for (size_t rank = choices.below(choices.chance(5) ? 40 : 4); rank > 0;
       --rank)
    shape += choices.pick(extents) + (choices.chance(90) ? "," : "");
  return shape + (choices.chance(95) ? close : "");
}

} // namespace

std::string damagedNpy(uint64_t seed) {
  Choices choices(seed);
  static const Words types = {"<f8", "<f4", "<i4", "<i8", "<u4", "<u8", "|b1",
                              ">f8", "<f2", "|O",  "<U5", "",    "f8",  "<f8'"};
  static const Words orders = {"False", "True", "false", "0", ""};
  std::string header = "{'descr': '" + choices.pick(types) +
                       "', 'fortran_order': " + choices.pick(orders) +
                       ", 'shape': " + shapeOf(choices, "(", ")") + ", }";
  if (choices.chance(30))
    choices.damage(header);
  while ((header.size() + 11) % 64 != 0 && choices.chance(99))
    header += ' ';
  header += '\n';
  size_t said = choices.chance(90) ? header.size() : choices.below(70000);
  std::string file = "\x93NUMPY";
  file += static_cast<char>(choices.chance(90) ? 1 : choices.below(256));
  file += static_cast<char>(choices.chance(90) ? 0 : choices.below(256));
  file += static_cast<char>(said & 255);
  file += static_cast<char>(said >> 8 & 255);
  file += header + std::string(8 * choices.below(40), '\1');
  if (choices.chance(30))
    choices.damage(file);
  return file;
}

std::string damagedArgument(uint64_t seed) {
  Choices choices(seed);
  static const Words types = {"f64",  "f32", "i32", "i64", "u32",  "u64",
                              "bool", "f16", "",    "F64", "index"};
  static const Words values = {"0",    "1",    "-1",    "2.5",
                               "nan",  "-inf", "1e999", "9223372036854775808",
                               "true", "",     "x",     "+1"};
  std::string text = choices.pick(types);
  if (choices.chance(80))
    text += shapeOf(choices, "[", "]");
  text += choices.pick({"=", ":", "", "=="});
  for (size_t count = choices.below(6); count > 0; --count)
    text += choices.pick(values) + (choices.chance(80) ? "," : "");
  if (choices.chance(30))
    choices.damage(text);
  return text;
}

} // namespace costate::inputs
