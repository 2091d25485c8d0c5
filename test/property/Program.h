#pragma once
/// Kernels as lists in parentheses: what the random kernel test generates,
/// shrinks, prints and reads back from its corpus.
///
///     (program 4
///       (range (i 4)
///         (var d0 f64 (sin (load x i)))
///         (for k 0 3 1
///           (set d0 (mul d0 (load x (idx 4 (add i k))))))
///         (store y i d0)))
///
/// where the first number is the width of the arrays.

#include "costate/types.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace costate::property {

/// An atom has a text and no list; the head of a list is its text.
struct Node {
  std::string text;
  bool isList = false;
  std::vector<Node> children;

  bool is(const char *head) const { return isList && text == head; }
  const Node &operator[](size_t at) const { return children.at(at); }
  bool operator==(const Node &) const = default;
};

Node atom(std::string text);
Node atom(int value);
Node list(std::string head, std::vector<Node> children = {});

/// Whether a node is a statement or holds statements.
bool isBlock(const Node &node);
/// The place of the first statement among the children of a block; throws
/// InvalidProgram for another node.
size_t firstStatement(const Node &block);
size_t countStatements(const Node &node);

std::string print(const Node &node);
/// The lists in `text`; `;` starts a comment.
std::vector<Node> parse(const std::string &text);

/// A program that cannot be traced: a name is missing.
struct InvalidProgram : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Elements of each private array.
inline constexpr int localSize = 3;

DType typeNamed(const std::string &name);

/// Calls `f` with a value of the C++ type that `type` stands for.
template <class F> auto withType(DType type, F &&f) {
  switch (type) {
  case DType::Bool:
    return f(bool());
  case DType::I8:
    return f(int8_t());
  case DType::I16:
    return f(int16_t());
  case DType::I32:
    return f(int32_t());
  case DType::I64:
    return f(int64_t());
  case DType::U8:
    return f(uint8_t());
  case DType::U16:
    return f(uint16_t());
  case DType::U32:
    return f(uint32_t());
  case DType::U64:
    return f(uint64_t());
  case DType::F16:
    return f(f16());
  case DType::F32:
    return f(float());
  case DType::F64:
    return f(double());
  }
  throw InvalidProgram("type");
}

} // namespace costate::property
