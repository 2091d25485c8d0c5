#include "cache/Settings.h"

#include "base/Bytes.h"

#include <cstdlib>
#include <filesystem>

namespace costate::cache {
namespace {

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

std::string usualFolder() {
  std::string caches = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (caches.starts_with('/')) // relative ones are to be ignored
    return caches + "/costate";
  return home.empty() ? "" : home + "/.cache/costate";
}

} // namespace

Result<Settings> settingsFor(Settings chosen) {
  if (variable("COSTATE_CACHE") == "0")
    chosen.enabled = false;
  if (std::string folder = variable("COSTATE_CACHE_DIR"); !folder.empty())
    chosen.folder = folder;
  if (chosen.folder.empty())
    chosen.folder = usualFolder();
  if (!chosen.folder.empty()) // the program may go elsewhere
    chosen.folder = std::filesystem::absolute(chosen.folder).string();
  std::string text = variable("COSTATE_CACHE_SIZE");
  if (text == "0")
    chosen.enabled = false;
  else if (!text.empty()) {
    Result<size_t> bytes = parseBytes(text);
    if (!bytes)
      return Failure{bytes.error().code,
                     "COSTATE_CACHE_SIZE: " + bytes.error().text};
    chosen.limit = *bytes;
  }
  return chosen;
}

} // namespace costate::cache
