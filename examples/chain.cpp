/// A robot arm writes a heart in the air. It is a chain of rigid links with a
/// joint between each two; where its tip is, follows from the angles of the
/// joints by forward kinematics. Gradient descent finds the angles of all poses
/// on the way at once: the tip stays on the curve, the arm out of a ball that
/// is in its way, and each pose close to the next.

#include "common/Picture.h"
#include "common/Problem.h"

#include <costate/costate.h>
#include <costate/syntax.h>

#include <cmath>
#include <cstdio>
#include <numbers>

using namespace costate;
using namespace example;

namespace {

using Point = std::array<double, 3>;
using Vectors = ArrayRef<Vec<double, 3>, 1>;
using Poses = ArrayRef<double, 2>; ///< angles, by pose and joint

constexpr Point ball = {0.35, 0.0, 0.55};
constexpr double radius = 0.22;

/// How far a point is inside of the ball, squared.
Expr<double> inBall(VecExpr<double, 3> point) {
  Expr<double> depth = max(radius - norm(point - ball), 0.0);
  return depth * depth;
}

Kernel reach =
    kernel("reach", [](Poses angles, Vectors axes, ArrayRef<double, 1> lengths,
                       Vectors curve, ArrayRef<Vec<double, 3>, 2> joints,
                       ArrayRef<double, 0> loss) {
      Index poses = angles.size(0);
      parallel(poses, [&](Index p) {
        Vec<double, 4> rotation = quaternion::identity<double>();
        Vec<double, 3> place;
        Var<double> penalty = 0.0;
        FOR (k, 0, axes.size()) { // along the arm
          ASSERT(abs(norm(axes(k)) - 1.0) < 1e-9, "axis {} is no direction", k);
          Expr<double> angle = angles(p, k);
          rotation = quaternion::multiply(
              rotation, quaternion::from_axis_angle(axes(k), angle));
          VecExpr<double, 3> link =
              quaternion::rotate(rotation, vec(0.0, 0.0, lengths(k)));
          penalty += inBall(place + 0.5 * link) + inBall(place + link);
          place += link;
          joints(p, k) = place;

          Expr<double> change = angles((p + 1) % poses, k) - angle;
          penalty += 2e-3 * change * change;
        }
        loss() += norm_sqr(place - curve(p)) + penalty;
      });
    });

/// Points of a heart that stands in the plane x = 0.75.
Points<3> heart(int points) {
  Points<3> curve;
  for (int p = 0; p < points; ++p) {
    double t = 2 * std::numbers::pi * p / points, s = std::sin(t);
    double height = 13 * std::cos(t) - 5 * std::cos(2 * t) -
                    2 * std::cos(3 * t) - std::cos(4 * t);
    curve.push_back({0.75, 0.025 * 16 * s * s * s, 0.65 + 0.025 * height});
  }
  return curve;
}

class Arm : public Problem {
public:
  Arm(Device device, int poses) : poses(poses) {
    angles = device.array<double>({poses, links}, grad);
    axes = device.array<Vec<double, 3>>({links}, grad);
    lengths = device.array<double>({links}, grad);
    curve = device.array<Vec<double, 3>>({poses}, grad);
    joints = device.array<Vec<double, 3>>({poses, links}, grad);
    miss = device.array<double>({}, grad);
    constexpr Point upright = {0, 0, 1}, across = {0, 1, 0}, along = {1, 0, 0};
    axes.from_host({upright, across, across, along, across, along, across});
    lengths.from_host({0.1, 0.35, 0.3, 0.2, 0.2, 0.15, 0.1});
    curve.from_host(heart(poses));
  }

  double loss(const Numbers &values) override {
    angles.from_host(values);
    miss.fill(0);
    reach(angles, axes, lengths, curve, joints, miss);
    return miss.to_host()[0];
  }

  double gradient(const Numbers &values, Numbers &slope) override {
    double now = loss(values);
    angles.grad().fill(0);
    miss.grad().fill(1);
    reach.grad(angles, axes, lengths, curve, joints, miss);
    slope = angles.grad().to_host();
    return now;
  }

  /// The joints of every `stride`th pose, a pose after the other.
  void writeArms(std::ostream &out, int stride) const {
    Points<3> all = joints.to_host();
    for (int p = 0; p < poses; p += stride) {
      out << "0 0 0 " << p << "\n";
      for (int k = 0; k < links; ++k)
        writePoint(out, all[size_t(p * links + k)], p);
      out << "\n\n";
    }
  }
  void writeTips(std::ostream &out) const {
    Points<3> all = joints.to_host();
    for (int p = 0; p <= poses; ++p)
      writePoint(out, all[size_t((p % poses + 1) * links - 1)], p);
  }
  void writeCurve(std::ostream &out) const {
    for (const Point &point : curve.to_host())
      writePoint(out, point, 0);
  }

  static constexpr int links = 7;
  const int poses;

private:
  static void writePoint(std::ostream &out, const Point &point, int pose) {
    out << point[0] << " " << point[1] << " " << point[2] << " " << pose
        << "\n";
  }

  Array<double> angles, lengths, miss;
  Array<Vec<double, 3>> axes, curve, joints;
};

/// All poses are the same: bent over the ball.
Numbers firstAngles(int poses) {
  Numbers angles;
  for (int p = 0; p < poses; ++p)
    angles.insert(angles.end(), {0, -0.3, 0.8, 0.1, 0.5, 0.1, 0.3});
  return angles;
}

/// The arm in some poses, the curve and the way of the tip.
std::string panel(const std::string &title, const std::string &when) {
  return "set title '" + title + "' font ',14'\nsplot " +
         R"(bx+br*cos(u)*cos(v), by+br*sin(u)*cos(v), bz+br*sin(v) \
           with lines lc rgb '#b9b2a2' lw 0.6, \
         for [i=0:arms-1] $arms)" +
         when + R"( index i using 1:2:3:4 with lines lw 2 palette, \
         $curve using 1:2:3 with points pt 6 ps 0.8 lc rgb '#1a7a3c', $tips)" +
         when + " using 1:2:3 with lines lw 2.5 lc rgb '#222222'\n";
}

bool draw(Arm &arm, const Numbers &learnt, const std::string &file) {
  Picture picture(file, 800, 370);
  auto add = [&](const std::string &when) {
    picture.data("arms" + when, [&](auto &out) { arm.writeArms(out, 6); });
    picture.data("tips" + when, [&](auto &out) { arm.writeTips(out); });
  };
  arm.loss(firstAngles(arm.poses));
  add("Before");
  arm.loss(learnt);
  add("After");
  picture.data("curve", [&](auto &out) { arm.writeCurve(out); });
  std::ostringstream look;
  look << "bx = " << ball[0] << "; by = " << ball[1] << "; bz = " << ball[2]
       << "; br = " << radius << "; arms = " << (arm.poses + 5) / 6 << R"(
set multiplot layout 1,2
set parametric; set isosamples 24,13
set urange [0:2*pi]; set vrange [-pi/2:pi/2]
set view 72,38,1.4; set view equal xyz; set xyplane at 0
set xrange [-0.2:1]; set yrange [-0.6:0.6]; set zrange [0:1.2]
set xtics 0.5; set ytics 0.5; set ztics 0.5
set palette defined (0 '#2166ac', 0.5 '#7b3294', 1 '#b2182b'); unset colorbox
)";
  return picture.draw(look.str() +
                      panel("before: all poses are the same", "Before") +
                      panel("after: the tip writes a heart", "After"));
}

} // namespace

int main(int argc, char **argv) {
  Arm arm(Device::best(), 48);
  Numbers angles = firstAngles(arm.poses);
  printSlopes(arm, angles);
  Numbers losses = descend(arm, angles, 300, 0.03);
  bool isDrawn = draw(arm, angles, argc > 1 ? argv[1] : "chain.png");
  return isDrawn && losses.back() < 0.02 * losses.front() ? 0 : 1;
}
