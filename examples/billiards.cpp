/// How must the cue ball be hit, so that a certain ball stops at a given place?
/// A game is computed from one collision to the next, of balls or with a
/// cushion: the iterations of its WHILE are as many as it takes. The state of a
/// game is in private arrays, which every collision overwrites. Gradient
/// descent improves many shots at the same time, of which the best is played.
///
/// Balls slow down in proportion to their speed. So how far they have come, and
/// not the time, is the clock: between collisions balls go straight ahead, by
/// their velocity times what the clock has moved, until it shows 1.

#include "common/Picture.h"
#include "common/Problem.h"

#include <costate/costate.h>
#include <costate/syntax.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

using namespace costate;
using namespace example;

namespace {

constexpr int balls = 7; ///< 0 is the cue ball
constexpr double tableLength = 2, tableWidth = 1, radius = 0.04;
constexpr int mostEvents = 200, wanted = 5;
constexpr std::array<double, 2> goal = {1.8, 0.8};

using Places = ArrayRef<Vec<double, 2>, 1>;

/// Positions or velocities of the balls of one game.
using Vectors = Local<Vec<double, 2>, balls>;

/// What comes next: a ball meets another one or, where `with` is negative, a
/// cushion.
struct Event {
  Var<double> when;
  Var<int64_t> ball = -1, with = -1;

  void propose(Expr<double> time, Index one, Index other) {
    IF (time < when) {
      when = time;
      ball = one;
      with = other;
    }
  }
};

/// When a coordinate reaches the cushion that it moves to.
void meetCushion(Event &next, Expr<double> x, Expr<double> speed, double length,
                 Index ball, int cushion) {
  IF (speed > 0) {
    next.propose((length - radius - x) / speed, ball, cushion);
  }
  ELIF (speed < 0) {
    next.propose((radius - x) / speed, ball, cushion);
  }
}

/// When two balls touch, if they do: the smaller root of a quadratic equation.
void meetBall(Event &next, const Vectors &place, const Vectors &speed, Index i,
              Index j) {
  VecExpr<double, 2> way = place[j] - place[i];
  VecExpr<double, 2> closing = speed[j] - speed[i];
  Expr<double> b = dot(way, closing);
  IF (b < 0) {
    Expr<double> gap = norm_sqr(way) - 4 * radius * radius;
    Expr<double> root = b * b - norm_sqr(closing) * gap;
    IF (root > 0) {
      next.propose(gap / (sqrt(root) - b), i, j);
    }
  }
}

/// Equal balls exchange their velocities along the line between them.
void bounce(const Event &event, const Vectors &place, const Vectors &speed) {
  Index i = event.ball, j = event.with;
  IF (j == -1) {
    speed[i].x() = -speed[i].x();
  }
  ELIF (j == -2) {
    speed[i].y() = -speed[i].y();
  }
  ELSE {
    VecExpr<double, 2> line = normalized(place[j] - place[i]);
    VecExpr<double, 2> kick = dot(speed[j] - speed[i], line) * line;
    speed[i] += kick;
    speed[j] -= kick;
  }
}

Kernel play = kernel(
    "play", [](Places shots, Places rack, ArrayRef<Vec<double, 2>, 3> path,
               ArrayRef<int, 1> events, ArrayRef<double, 1> loss) {
      parallel(shots.size(), [&](Index s) {
        Vectors place, speed;
        FOR (b, 0, balls) {
          place[b] = rack(b);
        }
        speed[0] = shots(s);
        Var<double> left = 1.0;
        Var<int> iterations = 0;
        FOR (b, 0, balls) {
          path(s, 0, b) = place[b];
        }
        WHILE ((left > 0) & (iterations < mostEvents)) {
          Event next = {left};
          FOR (i, 0, balls) {
            meetCushion(next, place[i].x(), speed[i].x(), tableLength, i, -1);
            meetCushion(next, place[i].y(), speed[i].y(), tableWidth, i, -2);
            FOR (j, i + 1, balls) {
              meetBall(next, place, speed, i, j);
            }
          }
          iterations += 1;
          FOR (b, 0, balls) {
            place[b] += next.when * speed[b];
            path(s, iterations, b) = place[b];
          }
          left -= next.when;
          IF (next.ball >= 0) {
            bounce(next, place, speed);
          }
        }
        ASSERT(left <= 0, "game {} has more than {} collisions", s, mostEvents);
        events(s) = iterations;
        loss(s) = norm_sqr(place[wanted] - goal);
      });
    });

/// Shots roughly at the rack.
Kernel invent = kernel("invent", [](Places shots, Scalar<int> seed) {
  parallel(shots.size(), [&](Index s) {
    Random random(seed, s);
    Expr<double> angle = random.uniform(-0.25, 0.25);
    Expr<double> strength = random.uniform(2.0, 4.0);
    shots(s) = strength * vec(cos(angle), sin(angle));
  });
});

/// The cue ball, and a loose triangle.
Points<2> makeRack() {
  Points<2> rack = {{0.4, 0.5}};
  for (int row = 0; row < 3; ++row)
    for (int k = 0; k <= row; ++k)
      rack.push_back({1.1 + 0.14 * row, 0.5 + 0.16 * (k - 0.5 * row)});
  return rack;
}

/// As many games as there are shots; the loss is their mean.
class Games : public Problem {
public:
  Games(Device device, int games) : games(games) {
    shots = device.array<Vec<double, 2>>({games}, grad);
    rack = device.array<Vec<double, 2>>({balls}, grad);
    path = device.array<Vec<double, 2>>({games, mostEvents + 1, balls}, grad);
    events = device.array<int>({games});
    miss = device.array<double>({games}, grad);
    rack.from_host(makeRack());
  }

  Numbers firstShots() {
    invent(shots, 6);
    return flat(shots.to_host());
  }

  double loss(const Numbers &values) override {
    shots.from_host(pointsOf<2>(values));
    play(shots, rack, path, events, miss);
    Numbers all = losses();
    return std::accumulate(all.begin(), all.end(), 0.0) / games;
  }

  double gradient(const Numbers &values, Numbers &slope) override {
    double mean = loss(values);
    miss.grad().fill(1.0 / games);
    shots.grad().fill({0, 0});
    play.grad(shots, rack, path, events, miss);
    slope = flat(shots.grad().to_host());
    return mean;
  }

  Numbers losses() const { return miss.to_host(); }

  /// The first game: a line with all balls for each collision, and the last
  /// one as a block of its own.
  void write(std::ostream &out) const {
    Numbers numbers = flat(path.to_host());
    int last = events.to_host()[0];
    auto line = [&](int t) {
      for (int k = 0; k < 2 * balls; ++k)
        out << numbers[size_t(2 * balls * t + k)] << " ";
      out << "\n";
    };
    for (int t = 0; t <= last; ++t)
      line(t);
    out << "\n\n";
    line(last);
  }

  const int games;

private:
  Array<Vec<double, 2>> shots, rack, path;
  Array<int> events;
  Array<double> miss;
};

/// Balls at the start as circles, their ways, and the balls at the end.
std::string panel(const std::string &title, const std::string &game) {
  std::string plot = "$goal using 1:2:(0.06) with circles lw 2 lc rgb 'white'";
  for (int b = 0; b < balls; ++b) {
    std::string colour = b == 0        ? " lc rgb '#ffffff'"
                         : b == wanted ? " lc rgb '#d1495b'"
                                       : " lc rgb '#e8b54d'";
    auto add = [&](const std::string &index, const std::string &look) {
      plot += ", $" + game + " index " + index + " using " +
              std::to_string(2 * b + 1) + ":" + std::to_string(2 * b + 2) +
              look + colour;
    };
    add("0", ":(0.04) every ::0::0 with circles");
    add("0", " with lines lw 1.5");
    add("1", ":(0.04) with circles fill solid noborder");
  }
  return "set title '" + title + "'\nplot " + plot + "\n";
}

bool draw(const Numbers &before, const Numbers &after,
          const std::string &file) {
  Games one(Device::best(), 1);
  Picture picture(file, 1000, 300);
  one.loss(before);
  picture.data("before", [&](auto &out) { one.write(out); });
  one.loss(after);
  picture.data("after", [&](auto &out) { one.write(out); });
  picture.data("goal",
               [](auto &out) { out << goal[0] << " " << goal[1] << "\n"; });
  return picture.draw(R"(
set multiplot layout 1,2 margins 0.01,0.99,0.03,0.88 spacing 0.02
set size ratio -1; unset tics; set xrange [0:2]; set yrange [0:1]
set object 1 rectangle from graph 0,0 to graph 1,1 fillcolor '#2f6b4f' \
  fillstyle solid noborder behind
)" + panel("the shot as invented", "before") +
                      panel("as learnt: red stops in the ring", "after"));
}

} // namespace

int main(int argc, char **argv) {
  Games all(Device::best(), 256), one(Device::best(), 1);
  const Numbers invented = all.firstShots();
  Numbers shots = invented;
  printSlopes(all, shots);
  descend(all, shots, 100, 0.01);
  Numbers losses = all.losses();
  auto best = std::min_element(losses.begin(), losses.end()) - losses.begin();
  Numbers first(&invented[size_t(2 * best)], &invented[size_t(2 * best)] + 2);
  Numbers shot(&shots[size_t(2 * best)], &shots[size_t(2 * best)] + 2);

  std::printf("the best of these shots:\n");
  double before = one.loss(first);
  double after = descend(one, shot, 150, 1e-3).back();
  std::printf("red stopped %.0f mm from the goal, now %.3f mm\n",
              1000 * std::sqrt(before), 1000 * std::sqrt(after));
  bool isDrawn = draw(first, shot, argc > 1 ? argv[1] : "billiards.png");
  return isDrawn && after < 1e-6 ? 0 : 1;
}
