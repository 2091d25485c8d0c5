#pragma once
/// Files of the tree that tests read.

#include <filesystem>

namespace costate::test {

/// A path of the source tree: in an archive of `./dev package` the copy beside
/// the running program, else where this file was compiled.
inline std::filesystem::path inSourceTree(const char *path) {
  namespace fs = std::filesystem;
  std::error_code none;
  fs::path program = fs::read_symlink("/proc/self/exe", none);
  fs::path copy = program.parent_path().parent_path() / "share" / "costate";
  if (fs::exists(copy / path, none))
    return copy / path;
  return fs::path(__FILE__).parent_path().parent_path() / path;
}

} // namespace costate::test
