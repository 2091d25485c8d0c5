#include "Labels.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <sstream>
#include <vector>

namespace costate::test {

namespace {

struct Rule {
  std::string file, tests;
  Label label;
};

std::vector<Rule> &rules() {
  static std::vector<Rule> all;
  return all;
}

const std::map<std::string, Label> names = {
    {"devices", Label::devices}, {"host", Label::host},
    {"waits", Label::waits},     {"repeats", Label::repeats},
    {"slow", Label::slow},       {"sample", Label::sample},
    {"starts", Label::starts}};

/// A unit of a layer that knows no device of the API.
bool isBelowApi(const std::string &file) {
  return file.find("/src/") != std::string::npos &&
         file.find("/src/api/") == std::string::npos;
}

bool hasAll(const std::set<Label> &labels, std::istringstream wanted) {
  for (std::string name; std::getline(wanted, name, ',');) {
    bool isWanted = name[0] != '-';
    if (labels.contains(names.at(name.substr(!isWanted))) != isWanted)
      return false;
  }
  return true;
}

/// Of a test: SUITE.NAME and the file that it stands in.
template <class Visit> void forEachTest(Visit visit) {
  const testing::UnitTest &all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite &suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo &test = *suite.GetTestInfo(t);
      visit(std::string(suite.name()) + "." + test.name(),
            std::string(test.file()));
    }
  }
}

} // namespace

LabelledTests::LabelledTests(std::string file, std::string tests, Label label) {
  rules().push_back({std::move(file), std::move(tests), label});
}

std::set<Label> labelsOf(const std::string &file, const std::string &test) {
  std::set<Label> labels;
  for (const Rule &rule : rules())
    if (rule.file == file && !fnmatch(rule.tests.c_str(), test.c_str(), 0))
      labels.insert(rule.label);
  if (!labels.contains(Label::host) && !isBelowApi(file))
    labels.insert(Label::devices);
  if (labels.contains(Label::repeats))
    labels.insert(Label::slow);
  return labels;
}

std::string chooseLabels(const std::string &wanted) {
  std::istringstream each(wanted);
  for (std::string name; std::getline(each, name, ',');)
    if (!names.contains(name.substr(name.starts_with("-"))))
      return "no label '" + name + "'";
  std::string filter = GTEST_FLAG_GET(filter);
  filter += filter.find('-') == std::string::npos ? "-" : ":";
  forEachTest([&](const std::string &test, const std::string &file) {
    if (!hasAll(labelsOf(file, test), std::istringstream(wanted)))
      filter += test + ":";
  });
  GTEST_FLAG_SET(filter, filter);
  return "";
}

} // namespace costate::test

int main(int count, char **values) {
  testing::InitGoogleTest(&count, values);
  const std::string option = "--labels=";
  for (int i = 1; i < count; ++i) {
    std::string value = values[i], problem = "no option '" + value + "'";
    if (value.starts_with(option))
      problem = costate::test::chooseLabels(value.substr(option.size()));
    if (!problem.empty()) {
      std::cerr << "costate-test: " << problem << "\n";
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
