#include "adbench/Lstm.h"

#include "costate/syntax.h"

#include <algorithm>

namespace costate::adbench {

using Real = Expr<double>;

static Real sigmoid(Real x) { return 1.0 / (1.0 + exp(-x)); }

/// Steps [first, last). What is element-wise is a work item for all steps, and
/// its neighbours are lanes; arrays with a time index are not overwritten.
static Kernel makeKernel() {
  return kernel(
      "lstm", [](Scalar<int64_t> first, Scalar<int64_t> last,
                 ArrayRef<double, 4> main, ArrayRef<double, 2> extra,
                 ArrayRef<double, 2> sequence, ArrayRef<double, 4> state,
                 ArrayRef<double, 2> output, ArrayRef<double, 0> loss) {
        Index layers = main.size(0), steps = sequence.size(0) - 1,
              width = sequence.size(1);
        parallel(width, [&](Index i) {
          FOR (t, first, last) {
            Var<double> u = sequence(t, i) * extra(0, i);
            FOR (l, 0, layers) {
              auto gate = [&](int number, Real x) -> Real {
                return x * main(l, 0, number, i) + main(l, 1, number, i);
              };
              Real hidden = state(t, l, 0, i), cell = state(t, l, 1, i);
              Real forget = sigmoid(gate(0, u)), in = sigmoid(gate(1, hidden)),
                   out = sigmoid(gate(2, u)), change = tanh(gate(3, hidden));
              Real next = cell * forget + in * change;
              u = out * tanh(next);
              state(t + 1, l, 0, i) = u;
              state(t + 1, l, 1, i) = next;
            }
            output(t, i) = u * extra(1, i) + extra(2, i);
          }
        });

        parallel(last - first, [&](Index step) {
          Index t = first + step;
          Var<double> sum = 2.0, total = 0.0;
          FOR (i, 0, width) {
            sum += exp(output(t, i));
          }
          Real logarithm = log(sum);
          FOR (i, 0, width) {
            total += sequence(t + 1, i) * (output(t, i) - logarithm);
          }
          loss() -= total / cast<double>(width * steps);
        });
      });
}

Lstm::Lstm(const Device &device, const LstmInput &in, int64_t stepsOfLaunch)
    : kernel(makeKernel()),
      main(device.array<double>({in.l, 2, 4, in.b}, grad)),
      extra(device.array<double>({3, in.b}, grad)),
      sequence(device.array<double>({in.c, in.b})),
      state(device.array<double>({in.c, in.l, 2, in.b}, grad)),
      output(device.array<double>({in.c, in.b}, grad)),
      loss(device.array<double>({}, grad)), steps(in.c - 1),
      stepsOfLaunch(stepsOfLaunch ? stepsOfLaunch
                                  : std::max<int64_t>(steps, 1)) {
  main.from_host(in.main);
  extra.from_host(in.extra);
  sequence.from_host(in.sequence);
  std::vector<double> states(size_t(state.size()));
  std::copy(in.state.begin(), in.state.end(), states.begin());
  state.from_host(states);
}

template <class Run> void Lstm::launch(int64_t first, Run &&run) {
  run(first, std::min(first + stepsOfLaunch, steps), main, extra, sequence,
      state, output, loss);
}

void Lstm::runAll() {
  loss.fill(0);
  for (int64_t first = 0; first < steps; first += stepsOfLaunch)
    launch(first, kernel);
}

void Lstm::runObjective() {
  runAll();
  loss.device().synchronize();
}

/// Needs what runObjective() left in the arrays, unless it takes several
/// launches.
void Lstm::runGradient() {
  for (Array<double> *array : {&main, &extra, &state})
    array->grad().fill(0);
  loss.grad().fill(1);
  if (steps <= stepsOfLaunch) {
    launch(0, [&](auto &&...arguments) { kernel.grad(arguments...); });
  } else {
    Tape tape;
    {
      auto recording = tape.record();
      runAll();
    }
    tape.backward();
  }
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
