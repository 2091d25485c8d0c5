#include "Bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace costate::bench {

std::vector<Bench> &registry() {
  static std::vector<Bench> benches;
  return benches;
}

namespace {

using Table = std::vector<std::vector<std::string>>;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + '"';
}

std::vector<std::string> metricNames(const std::vector<const Row *> &rows) {
  std::vector<std::string> names;
  for (const Row *row : rows)
    for (auto &[name, value] : row->metrics)
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  return names;
}

std::string cell(const Row &row, const std::string &metric) {
  for (auto &[name, value] : row.metrics)
    if (name == metric)
      return number(value);
  return "-";
}

void printAligned(const Table &table) {
  std::vector<size_t> width(table[0].size());
  for (auto &line : table)
    for (size_t i = 0; i < line.size(); ++i)
      width[i] = std::max(width[i], line[i].size());
  for (auto &line : table) {
    for (size_t i = 0; i < line.size(); ++i)
      std::printf(i == 0 ? "%-*s" : "  %*s", int(width[i]), line[i].c_str());
    std::printf("\n");
  }
}

void printBench(const std::vector<const Row *> &rows) {
  std::vector<std::string> metrics = metricNames(rows);
  Table table{{"case", "threads"}};
  table[0].insert(table[0].end(), metrics.begin(), metrics.end());
  for (const Row *row : rows) {
    std::vector<std::string> line{row->name, std::to_string(row->threads)};
    for (const std::string &metric : metrics)
      line.push_back(cell(*row, metric));
    table.push_back(std::move(line));
  }
  std::printf("%s on %s\n", rows[0]->bench.c_str(), rows[0]->device.c_str());
  printAligned(table);
}

} // namespace

void Results::print() const {
  std::vector<const Row *> group;
  for (size_t i = 0; i < rows.size(); ++i) {
    group.push_back(&rows[i]);
    if (i + 1 < rows.size() && rows[i + 1].bench == rows[i].bench)
      continue;
    printBench(group);
    group.clear();
  }
}

void Results::write() const {
  if (file.empty())
    return;
  std::ofstream out(file);
  out.precision(9);
  for (const Row &row : rows) {
    out << "{\"bench\": " << quoted(row.bench)
        << ", \"case\": " << quoted(row.name)
        << ", \"device\": " << quoted(row.device)
        << ", \"threads\": " << row.threads;
    if (!label.empty())
      out << ", \"label\": " << quoted(label);
    for (auto &[name, value] : row.metrics) {
      out << ", " << quoted(name) << ": ";
      std::isfinite(value) ? out << value : out << "null";
    }
    out << "}\n";
  }
  if (!out.flush())
    throw std::runtime_error("cannot write " + file.string());
}

} // namespace costate::bench
