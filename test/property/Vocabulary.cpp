#include "property/Vocabulary.h"

#include "property/Tensors.h"

namespace costate::property {

const std::vector<Function> &realFunctions() {
  using enum Operands;
  static const std::vector<Function> all = {
      {"add", Two},      {"sub", Two},       {"mul", Two},   {"div", Away},
      {"rem", Away},     {"fmod", Away},     {"min", Two},   {"max", Two},
      {"clamp", Bounds}, {"select", Choice}, {"fma", Three}, {"neg", Any},
      {"abs", Any},      {"floor", Any},     {"ceil", Any},  {"round", Any},
      {"trunc", Any},    {"sqrt", AboveOne},
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, library, domain, ...) \
  {#name, domain},
#include "costate/detail/operations.def"
  };
  return all;
}

const std::vector<Function> &integerFunctions() {
  using enum Operands;
  static const std::vector<Function> all = {
      {"add", Two},    {"sub", Two}, {"mul", Two},      {"div", Two},
      {"rem", Two},    {"and", Two}, {"or", Two},       {"xor", Two},
      {"shl", Two},    {"shr", Two}, {"min", Two},      {"max", Two},
      {"neg", Any},    {"not", Any}, {"abs", Any},      {"clamp", Three},
      {"popcnt", Any}, {"clz", Any}, {"select", Choice}};
  return all;
}

const std::vector<std::string> &comparisons() {
  static const std::vector<std::string> all = {"lt", "le", "gt",
                                               "ge", "eq", "ne"};
  return all;
}

const std::vector<std::string> &types() {
  static const std::vector<std::string> all = {"bool", "i32", "i64", "u32",
                                               "u64",  "f32", "f64", "i8",
                                               "i16",  "u8",  "u16", "f16"};
  return all;
}

const std::vector<std::string> &numberTypes() {
  static const std::vector<std::string> all(types().begin() + 1, types().end());
  return all;
}

bool isReal(const std::string &type) { return type[0] == 'f'; }
bool isUnsigned(const std::string &type) { return type[0] == 'u'; }
bool isNarrow(const std::string &type) {
  return type.ends_with("8") || type.ends_with("16");
}

bool isSingle(const std::string &type) {
  return type == "f32" || type == "f16";
}

std::vector<std::string> everything() {
  std::vector<std::string> all;
  auto add = [&](const std::string &head, const std::string &type) {
    all.push_back(head + " " + type);
  };
  for (const std::string &type : numberTypes())
    for (const Function &function :
         isReal(type) ? realFunctions() : integerFunctions())
      add(function.head, type);
  add("philox", "u64");
  for (const char *head : {"sum", "sums", "least", "most"})
    add(head, "f64");
  add("fetch", "bool");
  add("argmin", "i64");
  add("argmax", "i64");
  for (const char *head : {"and", "or", "xor", "not", "select", "eq", "ne"})
    add(head, "bool");
  for (const std::string &type : numberTypes())
    for (const std::string &comparison : comparisons())
      add(comparison, type);
  for (const std::string &from : types())
    for (const std::string &to : types())
      if (from != to)
        add("cast", from + " " + to);
  for (const char *head :
       {"load", "store", "var", "set", "carry", "local", "get", "put"})
    for (const std::string &type : types())
      add(head, type);
  for (const char *head : {"update", "fetch", "add to", "scale", "bump"})
    for (const std::string &type : numberTypes())
      add(head, type);
  for (const char *statement :
       {"if", "elif", "else", "for up", "for down", "for any", "while", "decay",
        "break", "continue", "return", "driven", "called", "print", "assert"})
    all.push_back(statement);
  for (const auto *operations : {&vectorOperations(), &matrixOperations(),
                                 &tensorReductions(), &tensorStatements()})
    for (const TensorOperation &operation : *operations)
      all.push_back(operation.head);
  return all;
}

} // namespace costate::property
