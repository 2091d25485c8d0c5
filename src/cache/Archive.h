#pragma once
/// Values as bytes and back: equal values give equal bytes.
///
/// ```cpp
/// struct Point { int x; std::string name; };
/// COSTATE_FIELDS(Point, x, name);
///
/// std::string bytes = Writer()(point, 3).take();
/// Point back; int three;
/// bool good = Reader(bytes)(back, three).isComplete();
/// ```

#include "costate/types.h"

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace costate::cache {

/// The fields of a struct, as a tuple of references.
template <class T> struct Fields;

/// All fields of a struct, in order: one that is left out does not compile.
#define COSTATE_FIELDS(TYPE, ...)                                              \
  template <> struct costate::cache::Fields<TYPE> {                            \
    static auto of(auto &self) {                                               \
      auto &[__VA_ARGS__] = self;                                              \
      return std::tie(__VA_ARGS__);                                            \
    }                                                                          \
  }

/// Texts that others point to.
class Names {
public:
  const char *keep(std::string_view name) {
    for (const std::string &known : names)
      if (known == name)
        return known.c_str();
    return names.emplace_back(name).c_str();
  }

private:
  std::deque<std::string> names;
};

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
concept Struct = requires { sizeof(Fields<T>); };

/// Lines that are counted from a place, in the file of that place.
class Lines {
public:
  explicit Lines(Loc origin) : origin(origin) {}
  /// 0 stays 0: it is no line.
  uint32_t relative(const char *file, uint32_t line) const {
    return line && counts(file) ? line - origin.line + middle : line;
  }
  uint32_t absolute(const char *file, uint32_t line) const {
    return line && counts(file) ? line - middle + origin.line : line;
  }

private:
  static constexpr uint32_t middle = 1u << 31; ///< what is never a line
  bool counts(const char *file) const {
    return origin.line && std::strcmp(file, origin.file) == 0;
  }
  Loc origin;
};

class Writer {
public:
  /// Lines are counted from `origin`: what has only moved within its file gives
  /// the same bytes.
  explicit Writer(Loc origin = {}) : lines(origin) {}

  template <class... T> Writer &operator()(const T &...values) {
    (write(values), ...);
    return *this;
  }
  const std::string &bytes() const { return written; }
  std::string take() { return std::move(written); }

private:
  void raw(const void *from, size_t size) {
    written.append(static_cast<const char *>(from), size);
  }
  template <Plain T> void write(T value) { raw(&value, sizeof value); }
  void write(std::string_view text) {
    write(uint64_t(text.size()));
    raw(text.data(), text.size());
  }
  void write(const std::string &text) { write(std::string_view(text)); }
  /// A name of a file, which many places share: the second time its number.
  void write(const char *name) {
    for (uint32_t k = 0; k < names.size(); ++k)
      if (names[k] == name || std::strcmp(names[k], name) == 0)
        return write(k);
    write(uint32_t(names.size()));
    names.push_back(name);
    write(std::string_view(name));
  }
  void write(const Loc &place) {
    (*this)(place.file, lines.relative(place.file, place.line), place.column);
  }
  template <class T> void write(const std::vector<T> &values) {
    write(uint64_t(values.size()));
    for (size_t k = 0; k < values.size(); ++k) {
      const T &value = values[k]; // also of vector<bool>
      write(value);
    }
  }
  template <Struct T> void write(const T &value) {
    std::apply([this](const auto &...field) { (*this)(field...); },
               Fields<T>::of(value));
  }

  const Lines lines;
  std::string written;
  std::vector<const char *> names;
};

/// Reads what a Writer has written. Bytes that are anything else leave values
/// after that are not to be used.
class Reader {
public:
  /// `names` keeps names of files that are read; `origin` is where that of the
  /// writer is now.
  explicit Reader(std::string_view bytes, Names *names = nullptr,
                  Loc origin = {})
      : lines(origin), rest(bytes), keeper(names) {}

  template <class... T> Reader &operator()(T &...values) {
    (read(values), ...);
    return *this;
  }
  /// Whether all was there, and nothing else.
  bool isComplete() const { return good && rest.empty(); }

private:
  bool raw(void *to, size_t size) {
    good = good && size <= rest.size();
    if (!good)
      return false;
    std::memcpy(to, rest.data(), size);
    rest.remove_prefix(size);
    return true;
  }
  template <Plain T> void read(T &value) {
    if (!raw(&value, sizeof value))
      value = T();
  }
  void read(bool &value) {
    uint8_t byte = 0;
    read(byte);
    value = byte != 0;
  }
  size_t readCount() {
    uint64_t count = 0;
    read(count);
    good = good && count <= rest.size(); // an entry takes a byte at least
    return good ? count : 0;
  }
  void read(std::string &text) {
    text.resize(readCount());
    raw(text.data(), text.size());
  }
  void read(const char *&name) {
    uint32_t number = 0;
    std::string text;
    read(number);
    if (number == names.size()) {
      read(text);
      names.push_back(keeper ? keeper->keep(text) : "");
    }
    good = good && number < names.size();
    name = good ? names[number] : "";
  }
  void read(Loc &place) {
    (*this)(place.file, place.line, place.column);
    place.line = lines.absolute(place.file, place.line);
  }
  template <class T> void read(std::vector<T> &values) {
    size_t count = readCount();
    values.clear();
    for (size_t k = 0; k < count && good; ++k) {
      T value{};
      read(value);
      values.push_back(std::move(value));
    }
  }
  template <Struct T> void read(T &value) {
    std::apply([this](auto &...field) { (*this)(field...); },
               Fields<T>::of(value));
  }

  const Lines lines;
  std::string_view rest;
  Names *keeper;
  std::vector<const char *> names;
  bool good = true;
};

} // namespace costate::cache
