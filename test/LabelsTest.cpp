#include "Labels.h"

#include <gtest/gtest.h>

COSTATE_LABEL("*", host);

namespace costate::test {
namespace {

const std::string file = "/a/test/SumTest.cpp";
const LabelledTests all(file, "Sum.*", Label::waits);
const LabelledTests one(file, "Sum.OfMany", Label::repeats);
const LabelledTests outside("/a/test/HostTest.cpp", "*", Label::host);

TEST(Labels, AreThoseOfTheFile) {
  EXPECT_EQ(
      labelsOf(file, "Sum.OfMany"),
      (std::set{Label::devices, Label::waits, Label::repeats, Label::slow}));
  EXPECT_EQ(labelsOf(file, "Sum.OfTwo"),
            (std::set{Label::devices, Label::waits}));
  EXPECT_EQ(labelsOf(file, "Product.OfTwo"), std::set{Label::devices});
  EXPECT_EQ(labelsOf("/b/test/SumTest.cpp", "Sum.OfMany"),
            std::set{Label::devices});
  EXPECT_EQ(labelsOf("/a/test/HostTest.cpp", "Any.Test"),
            std::set{Label::host});
}

TEST(Labels, OfLayersBelowTheApiHaveNoDevice) {
  EXPECT_EQ(labelsOf("/a/src/ir/AnyTest.cpp", "Any.Test"), std::set<Label>());
  EXPECT_EQ(labelsOf("/a/src/api/AnyTest.cpp", "Any.Test"),
            std::set{Label::devices});
}

TEST(Labels, ThatDoNotExistAreNamed) {
  EXPECT_EQ(chooseLabels("devices,-fast"), "no label '-fast'");
}

} // namespace
} // namespace costate::test
