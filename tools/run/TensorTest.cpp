#include "run/Npy.h"

#include <gtest/gtest.h>

namespace costate::run {
namespace {

std::string again(const std::string &text) {
  Result<Tensor> tensor = parseTensor(text);
  return tensor ? print(*tensor) : tensor.error().text;
}

TEST(Tensor, PrintsWhatItHasParsed) {
  for (const char *text :
       {"f64=0.1", "f64[]=-0", "i32[2,3]=1,2,3,4,5,6", "bool[2]=1,0",
        "u64=18446744073709551615", "f32[1,1,1,1,1,1,1,1]=1e-45",
        "i64[0]=", "f64[3]=inf,nan,-inf"})
    EXPECT_EQ(again(text), text);
  EXPECT_EQ(again("f64[2,2]:3.5"), "f64[2,2]=3.5,3.5,3.5,3.5");
  EXPECT_EQ(again("bool[2]=true, false"), "bool[2]=1,0");
}

TEST(Tensor, SaysWhatIsWrong) {
  EXPECT_EQ(again("f64[2]=1"), "`f64[2]=1`: has 1 values where 2 are needed");
  EXPECT_EQ(again("i32=1.5"), "`i32=1.5`: `1.5` is not a value of type i32");
  EXPECT_EQ(again("u32=-1"), "`u32=-1`: `-1` is not a value of type u32");
  EXPECT_EQ(again("f64[2=1,2"), "`f64[2=1,2`: the `[` is not closed");
  EXPECT_EQ(again("f64[-1]=1"), "`f64[-1]=1`: `-1` is not an extent");
  EXPECT_EQ(again("f64"),
            "`f64`: needs `=` and its values, or `:` and one for all");
  EXPECT_EQ(again("f64[1,1,1,1,1,1,1,1,1]=1"),
            "`f64[1,1,1,1,1,1,1,1,1]=1`: has more than 8 dimensions");
  EXPECT_EQ(again("f64[1000000,1000000,1000000]:0"),
            "`f64[1000000,1000000,1000000]:0`: is too large");
  EXPECT_EQ(again("f64[100000000000]:0"),
            "`f64[100000000000]:0`: does not fit into memory");
  EXPECT_NE(again("half=1").find("starts with no type"), std::string::npos);
  EXPECT_EQ(again("missing.npy"), "missing.npy: cannot be opened");
}

TEST(Npy, ReadsWhatItWrites) {
  for (const char *text :
       {"f64[2,3]=1,2,3,4,5,6", "f32[]=2.5", "i32[0,4]=", "u32[1]=7",
        "bool[3]=1,0,1", "u64[2]=0,18446744073709551615",
        "i64[1,1,1,1,1,1,1,2]=-1,1"}) {
    Result<Tensor> tensor = parseTensor(text);
    Result<Tensor> back = decodeNpy(encodeNpy(*tensor), "x.npy");
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_EQ(print(*back), text);
  }
}

std::string withHeader(const std::string &header, const std::string &body,
                       char version = 1) {
  std::string length = {static_cast<char>(header.size()), 0};
  if (version > 1)
    length += std::string(2, '\0');
  return "\x93NUMPY" + std::string{version, 0} + length + header + body;
}

std::string whyNot(const std::string &bytes) {
  Result<Tensor> tensor = decodeNpy(bytes, "x.npy");
  return tensor ? "read" : tensor.error().text;
}

TEST(Npy, ReadsTheOtherVersions) {
  std::string header =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n";
  EXPECT_EQ(whyNot(withHeader(header, std::string(8, '\0'), 2)), "read");
  EXPECT_EQ(whyNot(withHeader(header, std::string(8, '\0'), 3)), "read");
  EXPECT_EQ(whyNot(withHeader(header, std::string(8, '\0'), 4)),
            "x.npy: has version 4 of the .npy format; known are 1 to 3");
}

TEST(Npy, SaysWhatIsWrong) {
  auto file = [](const char *descr, const char *order, const char *shape) {
    return withHeader(std::string("{'descr': '") + descr +
                          "', 'fortran_order': " + order +
                          ", 'shape': " + shape + ", }\n",
                      std::string(16, '\0'));
  };
  EXPECT_EQ(whyNot(file("<f8", "False", "(2,)")), "read");
  EXPECT_EQ(whyNot(file("<f8", "True", "(2,)")),
            "x.npy: is in Fortran order; save numpy.ascontiguousarray of it");
  EXPECT_EQ(whyNot(file(">f8", "False", "(2,)")),
            "x.npy: is big endian (>f8); convert it with astype('<f8')");
  EXPECT_EQ(whyNot(file("<c16", "False", "(1,)")),
            "x.npy: has dtype <c16; known are bool, int and uint of 8 to 64 "
            "bits, and float16, float32 and float64");
  EXPECT_EQ(whyNot(file("<f8", "False", "(3,)")),
            "x.npy: holds 16 bytes of data where its shape needs 24");
  EXPECT_EQ(whyNot(file("<f8", "False", "(-1,)")),
            "x.npy: its header has the shape (-1,)");
  EXPECT_EQ(whyNot("GIF89a"), "x.npy: is not a .npy file");
  EXPECT_EQ(whyNot(file("<f8", "False", "(2,)").substr(0, 30)),
            "x.npy: ends in its header");
  EXPECT_EQ(whyNot(withHeader("{}\n", "")),
            "x.npy: its header names no simple dtype");
}

} // namespace
} // namespace costate::run
