#include <costate/costate.h>
#include <costate/syntax.h> // IF ELIF ELSE FOR WHILE BREAK CONTINUE RETURN; each also exists as a plain function
using namespace costate;

Kernel relax = kernel("relax", [](ArrayRef<double, 2> u, ArrayRef<double, 2> f,
                                  ArrayRef<int, 1> sweeps,
                                  ArrayRef<double, 0> loss, Scalar<double> h) {
  parallel({u.size(0), u.size(1)}, [&](Index i, Index j) {
    Var<double> v = u(i, j); // x(i) and x[i] for rank 1, a() for rank 0
    Var<int> iterations = 0;
    WHILE (iterations < sweeps[i]) { // bound read from memory
      v = 0.5 * (v + h * f(i, j) / v);
      iterations += 1;
      IF (abs(v * v - h * f(i, j)) < 1e-12) {
        BREAK;
      }
    }
    FOR (k, 0, iterations) {
      v = v * sin(v);
    }
    IF ((i > 0) & (j > 0)) {
      loss() += v;
    }
    ELSE {
      loss() += 2.0 * v * cast<double>(iterations);
    } // += on an array element is an atomic add
  });
});

int main() {
  Device device =
      Device::best(); // Device::open("cpu"); COSTATE_DEVICE=cpu|cuda|vulkan|...
                      // overrides best()
  Array<double> u = device.array<double>({64, 64}, grad | dual),
                f = device.array<double>({64, 64}, grad);
  Array<int> sweeps = device.array<int>({64});
  Array<double> loss = device.array<double>({}, grad | dual);
  u.from_host(std::vector<double>(64 * 64, 1.5));
  f.fill(2.0);
  sweeps.fill(20);
  loss.fill(0);

  relax(u, f, sweeps, loss, 0.1); // primal
  loss.grad().fill(1);
  u.grad().fill(0);
  relax.grad(u, f, sweeps, loss,
             0.1); // reverse: reads loss.grad(), adds to u.grad() and f.grad()
  relax.jvp(u, f, sweeps, loss,
            0.1); // forward: primal and tangent in one launch; reads u.dual(),
                  // adds to loss.dual()
  std::vector<double> du = u.grad().to_host();

  Tape tape; // several launches, exact also where arrays are overwritten
  {
    auto recording = tape.record();
    relax(u, f, sweeps, loss, 0.1);
  }
  tape.backward(loss);
  std::cout << check_gradient(relax, u, f, sweeps, loss, 0.1) << relax.report();
}
