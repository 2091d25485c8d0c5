#include "adbench/Lstm.h"

#include "costate/syntax.h"

#include <algorithm>

namespace costate::adbench {

using Real = Expr<double>;

static Real sigmoid(Real x) { return 1.0 / (1.0 + exp(-x)); }

/// Steps [first, last), which overwrite hidden values and cells in place.
/// The terms of a step meet in one sum, so that its code is serial.
static Kernel makeKernel() {
  return kernel("lstm", [](Scalar<int64_t> first, Scalar<int64_t> last,
                           ArrayRef<double, 4> main, ArrayRef<double, 2> extra,
                           ArrayRef<double, 2> sequence,
                           ArrayRef<double, 3> start, ArrayRef<double, 3> state,
                           ArrayRef<double, 1> output,
                           ArrayRef<double, 0> loss) {
    Index layers = main.size(0), steps = sequence.size(0) - 1,
          width = sequence.size(1);
    FOR (l, 0, layers) {
      FOR (i, 0, width) {
        state(l, 0, i) = start(l, 0, i);
        state(l, 1, i) = start(l, 1, i);
      }
    }
    Var<double> total = 0.0;
    FOR (t, first, last) {
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
      FOR (i, 0, width) {
        total += sequence(t + 1, i) * (output(i) - logarithm);
      }
    }
    loss() = loss() - total / cast<double>(width * steps);
  });
}

Lstm::Lstm(const Device &device, const LstmInput &in, int64_t stepsOfLaunch)
    : kernel(makeKernel()),
      main(device.array<double>({in.l, 2, 4, in.b}, grad)),
      extra(device.array<double>({3, in.b}, grad)),
      sequence(device.array<double>({in.c, in.b})),
      states({device.array<double>({in.l, 2, in.b})}),
      output(device.array<double>({in.b}, grad)),
      loss(device.array<double>({}, grad)), steps(in.c - 1),
      stepsOfLaunch(stepsOfLaunch ? stepsOfLaunch
                                  : std::max<int64_t>(steps, 1)) {
  main.from_host(in.main);
  extra.from_host(in.extra);
  states[0].from_host(in.state);
  sequence.from_host(in.sequence);
  for (int64_t step = 0; step < steps; step += this->stepsOfLaunch)
    states.push_back(device.array<double>({in.l, 2, in.b}, grad));
}

template <class Run> void Lstm::launch(int64_t number, Run &&run) {
  int64_t first = number * stepsOfLaunch,
          last = std::min(first + stepsOfLaunch, steps);
  run(first, last, main, extra, sequence, states[number], states[number + 1],
      output, loss);
}

void Lstm::runObjective() {
  loss.fill(0);
  for (size_t i = 0; i + 1 < states.size(); ++i)
    launch(i, kernel);
  loss.device().synchronize();
}

/// Needs the states that runObjective() left. Nothing else that the launches
/// find in the arrays that they overwrite counts.
void Lstm::runGradient() {
  main.grad().fill(0);
  extra.grad().fill(0);
  loss.grad().fill(1);
  for (size_t i = 1; i < states.size(); ++i)
    states[i].grad().fill(0);
  for (size_t i = states.size() - 1; i-- > 0;)
    launch(i, [&](auto &&...arguments) {
      kernel.grad(initial_state, arguments...);
    });
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
