#include "runtime/Message.h"

#include "base/Message.h"
#include "runtime/Text.h"

#include <bit>
#include <cctype>
#include <cstdio>

namespace costate::runtime {

/// As `printf` writes it.
static std::string written(std::string_view form, char kind, int64_t word) {
  std::string flags(form.substr(1));
  char letter = 0;
  if (!flags.empty() && std::isalpha(static_cast<unsigned char>(flags.back())))
    letter = flags.back(), flags.pop_back();
  bool isFloat = kind == 'f';
  double number = isFloat ? std::bit_cast<double>(word)
                  : kind == 'u'
                      ? static_cast<double>(static_cast<uint64_t>(word))
                      : static_cast<double>(word);
  char text[512];
  auto write = [&](const std::string &end, auto value) {
    std::snprintf(text, sizeof text, ("%" + flags + end).c_str(), value);
  };
  bool isWhole = letter == 0 || letter == 'd' || letter == 'x' || letter == 'X';
  if (!isFloat && isWhole)
    write(std::string("ll") + (letter == 0 || letter == 'd'
                                   ? (kind == 'u' ? 'u' : 'd')
                                   : letter),
          static_cast<long long>(word));
  else if (!letter && flags.find('.') == flags.npos)
    write("s", numberText(number).c_str());
  else
    write(std::string(1, isWhole ? 'g' : letter), number);
  return text;
}

std::string messageText(const KernelCode &code, int64_t text,
                        std::span<const int64_t> words,
                        const ElementName &name) {
  size_t next = 0;
  auto value = [&](char kind, std::string_view form) -> std::string {
    int64_t word = words[next++];
    if (kind == elementKind)
      return name(word, words[next++]);
    if (!form.empty() && kind != 'b')
      return written(form, kind, word);
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
                  std::span<const int64_t> words, WorkItemPlace workItem) {
  std::string line = messageText(code, text, words);
  if (line.starts_with(plainText)) {
    line.erase(0, 1);
  } else {
    std::string head = "kernel `" + code.name + "`" + siteText(code, site);
    if (workItem.number >= 0)
      head += ", " + workItem.text();
    line = head + ": " + line + "\n";
  }
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

} // namespace costate::runtime
