#pragma once
/// A folder that is gone with its test.

#include <cstdlib>
#include <filesystem>
#include <string>

namespace costate::test {

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "costate-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code none;
    std::filesystem::remove_all(path, none);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;

  std::filesystem::path path;
};

} // namespace costate::test
