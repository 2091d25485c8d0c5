#pragma once
/// Pictures by gnuplot.

#include <ostream>
#include <sstream>
#include <string>

namespace example {

/// Runs a script of gnuplot; if that fails, keeps it and says how to draw the
/// picture later.
bool runGnuplot(const std::string &script);

/// A PNG. Its data blocks come first, then commands that plot them:
///
///     Picture picture("cloth.png", 900, 400);
///     picture.data("losses", [&](std::ostream &out) { ... });
///     return picture.draw("plot $losses with lines");
class Picture {
public:
  Picture(const std::string &file, int width, int height);

  /// A data block `$name` of what `write` writes.
  template <class Write> void data(const std::string &name, Write &&write) {
    script << "$" << name << " << end\n";
    write(static_cast<std::ostream &>(script));
    script << "end\n";
  }

  bool draw(const std::string &commands);

private:
  std::ostringstream script;
};

} // namespace example
