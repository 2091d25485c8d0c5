#include "Plot.h"
#include "Kernels.h"

#include "../common/Picture.h"

#include <algorithm>
#include <sstream>

namespace pony {
namespace {

// The picture in gnuplot's language. It finds its numbers in variables and its
// curves in data blocks, which `writeData` puts in front of it.
constexpr const char *look = R"(
set terminal pngcairo size 1600,1280 enhanced font 'Sans,15' background '#fbfaf6'
set border linecolor '#666666'
set tics textcolor '#444444'
set palette defined (-1 '#2166ac', -0.4 '#67a9cf', 0 '#e3ddd0', 0.4 '#ef8a62', 1 '#b2182b')
set cbrange [-1:1]
unset key
set multiplot
)";

constexpr const char *stage = R"(
set lmargin at screen 0.03
set rmargin at screen 0.97
set tmargin at screen 0.945
set bmargin at screen 0.555
set title 'A soft pony learns to gallop, by gradient descent through its simulation' font ',21' offset 0,0.2
set xrange [0.03:1.28]
set yrange [0:0.415]
unset border; unset tics; unset colorbox
set object 1 rectangle from 0,0 to 2,ground fillcolor '#d8d0bd' fillstyle solid noborder behind
set label 1 'start' at startX,0.385 center textcolor '#888888'
set label 2 sprintf('after %.1f s', seconds) at endX,0.385 center textcolor '#333333'
set label 3 'target' at targetX,0.022 center textcolor '#1a7a3c' front
set arrow 1 from targetX,ground to targetX,targetY nohead lw 2 dashtype 2 lc rgb '#1a7a3c'
plot $first using 1:2 with points pt 7 ps 0.62 lc rgb '#c9c4b8', \
     $last using 1:2:3 with points pt 7 ps 0.62 palette, \
     $path using 1:2 with lines lw 3 lc rgb '#222222', \
     $path using 1:2 every ::0::0 with points pt 7 ps 1.5 lc rgb '#222222', \
     $target using 1:2 with points pt 6 ps 4.5 lw 3 lc rgb '#1a7a3c', \
     $target using 1:2 with points pt 7 ps 1.6 lc rgb '#1a7a3c'
unset label 1; unset label 2; unset label 3; unset arrow 1
)";

constexpr const char *film = R"(
set tmargin at screen 0.525
set bmargin at screen 0.415
set yrange [0.02:0.44]
do for [k=1:6] {
  set lmargin at screen 0.03+(k-1)*0.158
  set rmargin at screen 0.03+(k-1)*0.158+0.15
  set xrange [middle[k]-0.36:middle[k]+0.36]
  set title sprintf('%.1f s', (k-1)*seconds/5) font ',15' offset 0,-0.6
  plot $moment using 1:2:3 index (k-1) with points pt 7 ps 0.2 palette
}
)";

constexpr const char *charts = R"(
unset object 1
set border 3; set xtics nomirror out; set ytics nomirror out
set tmargin at screen 0.34
set bmargin at screen 0.075
set lmargin at screen 0.075
set rmargin at screen 0.47
set title 'loss: squared distance to the target, m^2' font ',16' offset 0,0
set xlabel 'iteration'
set logscale y; set format y '10^{%T}'
set xrange [-0.5:iterations+0.5]; set yrange [*:*]
set grid y lc rgb '#dddddd'
plot $losses using 0:1 with linespoints lw 3 pt 7 ps 1.1 lc rgb '#b2182b'
unset logscale; unset format; unset grid
set lmargin at screen 0.54
set rmargin at screen 0.92
set border 15
set title 'what the muscles learnt: red pulls, blue pushes' font ',16'
set xlabel 'time, s'; set ylabel 'muscle' offset 1
set xrange [0:seconds]; set yrange [-0.5:muscles-0.5]
set colorbox user origin 0.935,0.075 size 0.012,0.26
plot $muscles matrix using ($2*seconds/steps):1:3 with image
)";

/// The particles in `step`, a line for each: x, y, activation of the muscle.
void writeFrame(std::ostream &out, const Simulation &simulation,
                const Body &body, int64_t step) {
  std::vector<Point> points = simulation.particles(step);
  Numbers activation =
      simulation.activations(std::min<int64_t>(step, steps - 1));
  for (size_t p = 0; p < points.size(); ++p)
    out << points[p].x << " " << points[p].y << " "
        << activation[body.muscle[p]] << "\n";
}

/// Six moments, and where the body is in each.
void writeFilm(std::ostream &out, const Simulation &simulation,
               const Body &body) {
  out << "array middle[6]\n$moment << end\n";
  for (int k = 0; k < 6; ++k) {
    writeFrame(out, simulation, body, k * steps / 5);
    out << "\n\n";
  }
  out << "end\n";
  for (int k = 0; k < 6; ++k)
    out << "middle[" << k + 1 << "] = " << simulation.centre(k * steps / 5).x
        << "\n";
}

void writeData(std::ostream &out, const Simulation &simulation,
               const Body &body, Point target, const Numbers &losses) {
  out << "steps = " << steps << "\nseconds = " << steps << " * " << timeStep
      << "\nmuscles = " << body.muscles
      << "\niterations = " << losses.size() - 1
      << "\nground = " << margin * spacing
      << "\nstartX = " << simulation.centre(0).x
      << "\nendX = " << simulation.centre(steps).x << "\ntargetX = " << target.x
      << "\ntargetY = " << target.y << "\n$target << end\n"
      << target.x << " " << target.y << "\nend\n";
  out << "$first << end\n";
  writeFrame(out, simulation, body, 0);
  out << "end\n$last << end\n";
  writeFrame(out, simulation, body, steps);
  out << "end\n$losses << end\n";
  for (double loss : losses)
    out << loss << "\n";
  out << "end\n$path << end\n";
  for (int64_t t = 0; t <= steps; ++t)
    out << simulation.centre(t).x << " " << simulation.centre(t).y << "\n";
  out << "end\n$muscles << end\n";
  for (int64_t t = 0; t < steps; ++t) {
    for (double activation : simulation.activations(t))
      out << activation << " ";
    out << "\n";
  }
  out << "end\n";
  writeFilm(out, simulation, body);
}

} // namespace

bool plot(const Simulation &simulation, const Body &body, Point target,
          const Numbers &losses, const std::string &file) {
  std::ostringstream script;
  writeData(script, simulation, body, target, losses);
  script << "set output '" << file << "'\n" << look << stage << film << charts;
  return example::runGnuplot(script.str());
}

} // namespace pony
