#pragma once
/// LLVM IR of device functions for tests, and looking at what becomes of it.

#include "compiler/MathsReference.h"
#include "conversion/KernelToLLVM/MathLibrary.h"

#include <string>

namespace costate::compiler {

inline bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

inline size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + 1))
    ++count;
  return count;
}

/// A device function for the address of a number in word 0.
inline std::string withNumber(const std::string &type, const std::string &body,
                              const std::string &declarations = "",
                              int words = 1) {
  return declarations +
         "\ndefine void @f.range0(ptr %words, i64 %thread, i64 "
         "%threads, ptr %memory) #0 {\n  %a = load ptr, ptr %words\n"
         "  %p = getelementptr " +
         type + ", ptr %a, i64 %thread\n  %x = load " + type + ", ptr %p\n" +
         body + "  store " + type +
         " %y, ptr %p\n  ret void\n}\n"
         "attributes #0 = { noinline \"target-cpu\"=\"x86-64\" "
         "\"costate-words\"=\"" +
         std::to_string(words) + "\" }\n";
}

/// The operations of the language that are functions, as device functions.
inline std::string callOf(const Function &function, bool isF64) {
  std::string type = isF64 ? "double" : "float";
  std::string name = conversion::MathLibrary(conversion::Maths::Libclc)
                         .function(function.operation, isF64);
  std::string params = type + (function.isBinary ? ", " + type : "");
  std::string arguments =
      type + " %x" + (function.isBinary ? ", " + type + " %v" : "");
  std::string element = "getelementptr " + type + ", ptr ";
  return "declare " + type + " @" + name + "(" + params +
         ")\ndefine void @f(ptr %words, i64 %i, i64 %threads, ptr %memory) "
         "\"costate-words\"=\"4\" {\n"
         "  %w1 = getelementptr i64, ptr %words, i64 1\n"
         "  %w2 = getelementptr i64, ptr %words, i64 2\n"
         "  %w3 = getelementptr i64, ptr %words, i64 3\n"
         "  %n = load i64, ptr %w3\n"
         "  %in = icmp ult i64 %i, %n\n"
         "  br i1 %in, label %body, label %done\n"
         "body:\n  %a = load ptr, ptr %words\n  %b = load ptr, ptr %w1\n"
         "  %c = load ptr, ptr %w2\n"
         "  %p = " +
         element + "%a, i64 %i\n  %q = " + element +
         "%b, i64 %i\n  %r = " + element +
         "%c, i64 %i\n"
         "  %x = load " +
         type + ", ptr %p\n  %v = load " + type + ", ptr %q\n  %y = call " +
         type + " @" + name + "(" + arguments + ")\n  store " + type +
         " %y, ptr %r\n  br label %done\n"
         "done:\n  ret void\n}\n";
}

inline bool isCalled(const Function &function) {
  return !conversion::MathLibrary(conversion::Maths::Libclc)
              .function(function.operation, true)
              .empty();
}

} // namespace costate::compiler
