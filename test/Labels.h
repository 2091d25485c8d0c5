#pragma once
/// Which runs of the tests take which of them. A file says so at its top:
///
///     COSTATE_LABEL("*", waits);
///     COSTATE_LABEL("Volume.Gradient", slow);
///
/// `costate-test --labels=devices,-slow` takes those that have the one and lack
/// the other; `--gtest_filter` chooses among them.

#include <set>
#include <string>

namespace costate::test {

enum class Label {
  devices, ///< runs on the device of the tests; all but those of src below api
  host,    ///< opens what it needs itself: the others outside of these layers
  waits,   ///< its threads wait for each other or add to the same elements
  repeats, ///< takes long by large kernels, and shows no more on other devices
  slow,    ///< takes more than a second; `repeats` are too
  sample,  ///< one of those few that every test run takes on slow devices
  starts,  ///< starts this program anew, which emulators of processors may not
};

struct LabelledTests {
  /// `tests`: SUITE.NAME, in which `*` stands for anything, of this file.
  LabelledTests(std::string file, std::string tests, Label label);
};

std::set<Label> labelsOf(const std::string &file, const std::string &test);

/// Leaves out the tests that `labels` does not take; BadArgument as text.
std::string chooseLabels(const std::string &labels);

} // namespace costate::test

#define COSTATE_LABEL_NAME(line) labelledTests##line
#define COSTATE_LABEL_AT(line, tests, label)                                   \
  static const costate::test::LabelledTests COSTATE_LABEL_NAME(line)(          \
      __FILE__, tests, costate::test::Label::label)
#define COSTATE_LABEL(tests, label) COSTATE_LABEL_AT(__LINE__, tests, label)
