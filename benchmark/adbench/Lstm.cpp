#include "adbench/Lstm.h"

#include "costate/syntax.h"

namespace costate::adbench {

using Real = Expr<double>;

static Real sigmoid(Real x) { return 1.0 / (1.0 + exp(-x)); }

/// All steps in one kernel, which overwrites hidden values and cells in place.
/// The terms of a step meet in one sum, so that its code is serial.
static Kernel makeKernel() {
  return kernel("lstm", [](ArrayRef<double, 4> main, ArrayRef<double, 2> extra,
                           ArrayRef<double, 3> start, ArrayRef<double, 2> sequence,
                           ArrayRef<double, 3> state, ArrayRef<double, 1> output,
                           ArrayRef<double, 0> loss) {
    Index layers = main.size(0), steps = sequence.size(0) - 1, width = sequence.size(1);
    FOR (l, 0, layers) {
      FOR (i, 0, width) {
        state(l, 0, i) = start(l, 0, i);
        state(l, 1, i) = start(l, 1, i);
      }
    }
    Var<double> total = 0.0;
    FOR (t, 0, steps) {
      Var<double> sum = 2.0;
      FOR (i, 0, width) {
        Var<double> u = sequence(t, i) * extra(0, i);
        FOR (l, 0, layers) {
          auto gate = [&](int number, Real x) -> Real {
            return x * main(l, 0, number, i) + main(l, 1, number, i);
          };
          Real hidden = state(l, 0, i), cell = state(l, 1, i);
          Real forget = sigmoid(gate(0, u)), in = sigmoid(gate(1, hidden)),
               out = sigmoid(gate(2, u)), change = tanh(gate(3, hidden));
          Real next = cell * forget + in * change;
          u = out * tanh(next);
          state(l, 0, i) = u;
          state(l, 1, i) = next;
        }
        Real y = u * extra(1, i) + extra(2, i);
        output(i) = y;
        sum += exp(y);
      }
      Real logarithm = log(sum);
      FOR (i, 0, width) { total += sequence(t + 1, i) * (output(i) - logarithm); }
    }
    loss() = -total / cast<double>(width * steps);
  });
}

Lstm::Lstm(const Device &device, const LstmInput &in)
    : kernel(makeKernel()), main(device.array<double>({in.l, 2, 4, in.b}, grad)),
      extra(device.array<double>({3, in.b}, grad)),
      start(device.array<double>({in.l, 2, in.b})),
      sequence(device.array<double>({in.c, in.b})),
      state(device.array<double>({in.l, 2, in.b}, grad)),
      output(device.array<double>({in.b}, grad)), loss(device.array<double>({}, grad)) {
  main.from_host(in.main);
  extra.from_host(in.extra);
  start.from_host(in.state);
  sequence.from_host(in.sequence);
}

void Lstm::runObjective() {
  kernel(main, extra, start, sequence, state, output, loss);
  loss.device().synchronize();
}

/// Nothing that the launch finds in the arrays that it overwrites counts.
void Lstm::runGradient() {
  main.grad().fill(0);
  extra.grad().fill(0);
  loss.grad().fill(1);
  kernel.grad(initial_state, main, extra, start, sequence, state, output, loss);
  loss.device().synchronize();
}

double Lstm::objective() const { return loss.to_host()[0]; }

std::vector<double> Lstm::gradient() const {
  std::vector<double> all = main.grad().to_host();
  for (double entry : extra.grad().to_host())
    all.push_back(entry);
  return all;
}

} // namespace costate::adbench
