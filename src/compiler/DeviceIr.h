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

/// A function that runs in tiles, and sorts before.
inline constexpr const char *sortedTiles = R"(
declare i64 @costate_device_tape_place()
declare i64 @costate_device_tape_drains(ptr)
declare i64 @costate_device_sort_begin(ptr, ptr, i64, ptr, i64)
declare i64 @costate_device_sort_rounds(ptr)
declare i64 @costate_device_sort_work_item(ptr, i64)
declare void @costate_device_sort_take(ptr, i64, i64, i64)
declare i64 @costate_device_sort_next(ptr)
declare void @costate_device_sort_end(ptr)
declare void @costate_device_tape_begin(ptr, ptr, i64, i64, ptr, i64)
declare i64 @costate_device_tape_tile(ptr)
define internal void @tiles.body(ptr %words, i64 %thread, ptr %memory) {
  %worker = alloca [256 x i8], align 8
  %place = call i64 @costate_device_tape_place()
  %first = call i64 @costate_device_sort_begin(ptr %worker, ptr %words, i64 %thread, ptr %memory, i64 %place)
  br label %more
more:
  %any = phi i64 [ %first, %0 ], [ %next, %chunk ]
  %goes = icmp ne i64 %any, 0
  br i1 %goes, label %chunk, label %end
chunk:
  %rounds = call i64 @costate_device_sort_rounds(ptr %worker)
  %item = call i64 @costate_device_sort_work_item(ptr %worker, i64 %rounds)
  call void @costate_device_sort_take(ptr %worker, i64 %rounds, i64 %item, i64 %rounds)
  %next = call i64 @costate_device_sort_next(ptr %worker)
  br label %more
end:
  call void @costate_device_sort_end(ptr %worker)
  %tapes = alloca [256 x i8], align 8
  call void @costate_device_tape_begin(ptr %tapes, ptr %words, i64 %thread, i64 %thread, ptr %memory, i64 %place)
  %tile = call i64 @costate_device_tape_tile(ptr %tapes)
  %runs = icmp ne i64 %tile, -1
  br i1 %runs, label %run, label %done
run:
  %drains = call i64 @costate_device_tape_drains(ptr %tapes)
  store volatile i64 1234567, ptr %memory
  store i64 %drains, ptr %memory
  br label %done
done:
  ret void
}
define void @tiles(ptr %words, i64 %thread, i64 %threads, ptr %memory) #0 {
  call void @tiles.body(ptr %words, i64 %thread, ptr %memory)
  ret void
}
attributes #0 = { "costate-words"="40" "costate-tiles" }
)";

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

/// Each thread adds the sine of its number, and 1, to shared sums.
inline const char *const sums = R"(
declare double @_Z3sind(double)
define void @sums(ptr %words, i64 %thread, i64 %threads, ptr %memory) "costate-words"="3" {
  %w1 = getelementptr i64, ptr %words, i64 1
  %w2 = getelementptr i64, ptr %words, i64 2
  %out = load ptr, ptr %words
  %a = load i64, ptr %w1
  %sum = inttoptr i64 %a to ptr
  %count = load ptr, ptr %w2
  %i = sitofp i64 %thread to double
  %s = call double @_Z3sind(double %i)
  %p = getelementptr double, ptr %out, i64 %thread
  store double %s, ptr %p
  %old = atomicrmw fadd ptr %sum, double %s monotonic
  %older = atomicrmw add ptr %count, i64 %threads monotonic
  ret void
}
)";

/// Each thread adds the sine of its number and 1, for two sums over the grid.
/// Words: partial sums, their number, ticket, results.
inline const char *const gridSums = R"(
declare double @_Z3sind(double)
declare void @costate_device_add_up(ptr, i64, i64, i64, ptr, i64, i64, double)
declare i64 @costate_device_finish_sums(ptr, i64, ptr, i64, i64, ptr, i64, i64, ptr)
define void @sums(ptr %words, i64 %thread, i64 %threads, ptr %memory) #0 {
  %w1 = getelementptr i64, ptr %words, i64 1
  %w2 = getelementptr i64, ptr %words, i64 2
  %w3 = getelementptr i64, ptr %words, i64 3
  %partials = load ptr, ptr %words
  %count = load i64, ptr %w1
  %ticket = load ptr, ptr %w2
  %to = load ptr, ptr %w3
  %i = sitofp i64 %thread to double
  %s = call double @_Z3sind(double %i)
  call void @costate_device_add_up(ptr %partials, i64 %count, i64 0, i64 %thread, ptr %memory, i64 0, i64 0, double %s)
  call void @costate_device_add_up(ptr %partials, i64 %count, i64 0, i64 %thread, ptr %memory, i64 1, i64 0, double 1.0)
  %done = call i64 @costate_device_finish_sums(ptr %partials, i64 %count, ptr %ticket, i64 %thread, i64 %threads, ptr %memory, i64 2, i64 0, ptr %to)
  ret void
}
attributes #0 = { "costate-words"="4" "costate-sums" }
)";

/// Of two elements, which blocks add up.
inline const char *const blockSums = R"(
declare void @costate_device_begin_in_block()
declare void @costate_device_end_in_block()
declare void @costate_device_add_in_block_f32(ptr, float, i64)
declare void @costate_device_add_in_block_f64(ptr, double, i64)
define void @sums(ptr %words, i64 %thread, i64 %threads, ptr %memory) #0 {
  call void @costate_device_begin_in_block()
  %a = load ptr, ptr %words
  %b = getelementptr i8, ptr %a, i64 8
  call void @costate_device_add_in_block_f32(ptr %a, float 1.0, i64 %threads)
  call void @costate_device_add_in_block_f64(ptr %b, double 1.0, i64 9)
  call void @costate_device_end_in_block()
  ret void
}
attributes #0 = { "costate-words"="1" }
)";

/// Stores the largest number of the warp and then waits for the block.
inline const std::string warpMaximum =
    "declare i64 @costate_device_warp_max(i64) #1\n"
    "declare void @costate_device_block_barrier() #1\n"
    "define void @f(ptr %words, i64 %thread, i64 %threads, ptr %memory) "
    "#0 {\n  %a = load ptr, ptr %words\n"
    "  %p = getelementptr i64, ptr %a, i64 %thread\n"
    "  %x = load i64, ptr %p\n"
    "  %m = call i64 @costate_device_warp_max(i64 %x)\n"
    "  call void @costate_device_block_barrier()\n"
    "  store i64 %m, ptr %p\n  ret void\n}\n"
    "attributes #0 = { \"costate-words\"=\"1\" }\n"
    "attributes #1 = { convergent }\n";

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
