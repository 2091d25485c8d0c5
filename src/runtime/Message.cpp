#include "runtime/Message.h"

#include "base/Message.h"
#include "runtime/Text.h"

#include <bit>
#include <cstdio>

namespace costate::runtime {

std::string messageText(const KernelCode &code, int64_t text,
                        std::span<const int64_t> words) {
  size_t next = 0;
  auto value = [&](char kind) -> std::string {
    int64_t word = words[next++];
    if (kind == 'f')
      return numberText(std::bit_cast<double>(word));
    if (kind == 'b')
      return word ? "true" : "false";
    return kind == 'u' ? std::to_string(static_cast<uint64_t>(word))
                       : std::to_string(word);
  };
  return *filled(code.texts[static_cast<size_t>(text)], value);
}

void printMessage(const KernelCode &code, int64_t site, int64_t text,
                  std::span<const int64_t> words, IterationPlace iteration) {
  std::string line = "kernel `" + code.name + "`" + siteText(code, site);
  if (iteration.number >= 0)
    line += ", " + iteration.text();
  line += ": " + messageText(code, text, words) + "\n";
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

} // namespace costate::runtime
