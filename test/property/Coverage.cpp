#include "property/Coverage.h"

#include "property/Vocabulary.h"

#include <iomanip>
#include <ostream>

namespace costate::property {

static constexpr const char *constructNames[constructs] = {
    "serial", "range", "if", "for", "while", "nested"};
static constexpr const char *modeNames[] = {"primal", "gradient", "tangent",
                                            "second order"};

void Coverage::add(const Uses &uses, Covered mode) {
  for (auto &[thing, where] : uses)
    for (size_t k = 0; k < constructs; ++k)
      rows[thing][k][size_t(mode)] += where >> k & 1;
}

void Coverage::add(const Coverage &other) {
  for (auto &[thing, row] : other.rows)
    for (size_t k = 0; k < constructs; ++k)
      for (size_t mode = 0; mode < modes; ++mode)
        rows[thing][k][mode] += row[k][mode];
}

std::vector<std::string> Coverage::emptyCells() const {
  std::vector<std::string> empty;
  for (const std::string &thing : everything()) {
    auto row = rows.find(thing);
    for (size_t k = 0; k < constructs; ++k)
      for (size_t mode = 0; mode < modes; ++mode)
        if (row == rows.end() || row->second[k][mode] == 0)
          empty.push_back(thing + " in " + constructNames[k] + ", " +
                          modeNames[mode]);
  }
  return empty;
}

void Coverage::print(std::ostream &out) const {
  out << std::left << std::setw(16) << "primal/gradient/tangent/second";
  for (const char *name : constructNames)
    out << std::right << std::setw(20) << name;
  out << '\n';
  for (const std::string &thing : everything()) {
    out << std::left << std::setw(23) << thing;
    auto row = rows.find(thing);
    for (size_t k = 0; k < constructs; ++k) {
      std::string cell;
      for (size_t mode = 0; mode < modes; ++mode)
        cell += (mode ? "/" : "") +
                std::to_string(row == rows.end() ? 0 : row->second[k][mode]);
      out << std::right << std::setw(20) << cell;
    }
    out << '\n';
  }
  std::vector<std::string> empty = emptyCells();
  out << empty.size() << " of " << everything().size() * constructs * modes
      << " cells are empty\n";
  for (const std::string &cell : empty)
    out << "  empty: " << cell << '\n';
}

} // namespace costate::property
