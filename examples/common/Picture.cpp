#include "Picture.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <unistd.h>

namespace example {

bool runGnuplot(const std::string &script) {
  std::filesystem::path file =
      std::filesystem::temp_directory_path() /
      ("costate-" + std::to_string(getpid()) + ".gnuplot");
  std::ofstream(file) << script;
  if (std::system(("gnuplot '" + file.string() + "'").c_str()) == 0) {
    std::filesystem::remove(file);
    return true;
  }
  std::cerr << "there is no picture, because gnuplot is missing or failed; "
               "to draw it later: gnuplot "
            << file.string() << "\n";
  return false;
}

Picture::Picture(const std::string &file, int width, int height) {
  script << "set terminal pngcairo size " << width << "," << height
         << " enhanced font 'Sans,12' background '#fbfaf6'\nset output '"
         << file << "'\nset border linecolor '#666666'\n"
         << "set tics textcolor '#444444'\nunset key\n";
}

bool Picture::draw(const std::string &commands) {
  return runGnuplot(script.str() + commands);
}

} // namespace example
