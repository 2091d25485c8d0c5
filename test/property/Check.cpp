#include "property/Check.h"

#include "conformance/TestDevice.h"
#include "property/Emit.h"
#include "property/Oracle.h"
#include "property/Reference.h"
#include "property/Scalars.h"
#include "property/Singles.h"
#include "property/Spread.h"
#include "property/Workbench.h"

#include "api/KernelImpl.h"
#include "syntax/Trace.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <sstream>

namespace costate::property {
namespace {

using detail::Mode;

struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Whether one of these words stands in the program.
bool uses(const Node &node, const std::vector<std::string> &words) {
  if (!node.isList)
    return std::ranges::find(words, node.text) != words.end();
  return std::ranges::any_of(
      node.children, [&](const Node &child) { return uses(child, words); });
}

bool updates(const Node &node) {
  return node.is("update") || std::ranges::any_of(node.children, updates);
}

bool usesHalf(const Node &node) { return uses(node, {"f16", "f", "l"}); }
bool usesSingle(const Node &node) {
  return usesSingles() || usesHalf(node) || uses(node, {"f32", "a", "b"});
}

bool callsFunctions(const Node &node) {
  return node.is("called") ||
         std::ranges::any_of(node.children, callsFunctions);
}

bool isFinite(const Values &values, double limit) {
  for (const std::vector<double> &array : values)
    for (double value : array)
      if (!(std::abs(value) <= limit))
        return false;
  return true;
}

double largest(const Values &values) {
  double most = 0;
  for (const std::vector<double> &array : values)
    for (double value : array)
      most = std::max(most, std::abs(value));
  return most;
}

double dot(const Values &a, const Values &b) {
  double sum = 0;
  for (size_t array = 0; array < a.size(); ++array)
    for (size_t i = 0; i < std::min(a[array].size(), b[array].size()); ++i)
      sum += a[array][i] * b[array][i];
  return sum;
}

//===-- Comparisons -------------------------------------------------------===//

void compare(const std::string &what, const Values &actual,
             const Values &expected, double tolerance,
             const Spread &spread = {}) {
  for (size_t array = 0; array < actual.size(); ++array)
    for (size_t i = 0; i < actual[array].size(); ++i) {
      double a = actual[array][i], b = expected[array][i];
      if (agree(a, b, tolerance + spread.allowed(array, i)))
        continue;
      std::ostringstream text;
      text.precision(17);
      text << what << ": ";
      if (actual.size() > 1)
        text << storedArrays()[array].name << "[" << i << "] ";
      text << "is " << a << ", not " << b;
      throw Mismatch(text.str());
    }
}

/// In hexadecimal.
std::string elementOf(const interpreter::HostArray &array, DType type,
                      size_t element) {
  uint64_t bits = 0;
  std::memcpy(&bits, array.bytes.data() + element * sizeOf(type), sizeOf(type));
  std::ostringstream text;
  text << "0x" << std::hex << bits;
  return text.str();
}

void compareIntegers(const std::string &what, const ArrayInfo &info,
                     const interpreter::HostArray &actual,
                     const interpreter::HostArray &expected) {
  if (actual.extents != expected.extents)
    throw Mismatch(what + ": " + info.name + " has another size");
  if (actual.bytes == expected.bytes)
    return;
  auto [at, other] = std::ranges::mismatch(actual.bytes, expected.bytes);
  size_t i = (at - actual.bytes.begin()) / sizeOf(info.type);
  throw Mismatch(what + ": " + info.name + "[" + std::to_string(i) + "] is " +
                 elementOf(actual, info.type, i) + ", not " +
                 elementOf(expected, info.type, i));
}

void compare(const std::string &what, const Memory &actual,
             const Memory &expected, double tolerance,
             const Spread &spread = {}) {
  compare(what, toDoubles(actual), toDoubles(expected), tolerance, spread);
  for (size_t k = 0; k < actual.size(); ++k)
    if (!isFloat(storedArrays()[k].type))
      compareIntegers(what, storedArrays()[k], actual[k], expected[k]);
}

void compare(const std::string &what, double actual, double expected,
             double tolerance) {
  compare(what, Values{{actual}}, Values{{expected}}, tolerance);
}

Device device(int threads) {
  thread_local Device one = test::openDevice({.threads = 1});
  thread_local Device four = test::openDevice({.threads = 4});
  return threads == 1 ? one : four;
}

/// How compiled code runs.
enum class Way {
  Plain,
  Tangent,
  InitialState,
  Recorded,
  FourThreads,
  Debug,
  Deterministic,
  SecondOrder,
};

Way wayOf(unsigned seed) {
  using enum Way;
  static constexpr Way ways[] = {
      Plain,        Tangent, Plain, Tangent,     Recorded,      SecondOrder,
      InitialState, Tangent, Debug, FourThreads, Deterministic, SecondOrder};
  return ways[seed % std::size(ways)];
}

/// Bit by bit: functions are those of libm, and no sum is fused. Vectors and
/// matrices are evaluated component by component.
void againstTree(const Node &program, const syntax::Kernel &tree,
                 const Inputs &inputs) {
  Memory expected = inputs.memory, actual = inputs.memory;
  std::vector<interpreter::InterpreterArgument> arguments;
  for (interpreter::HostArray &array : expected)
    arguments.push_back({&array});
  arguments.push_back({nullptr, 0, inputs.p});
  arguments.push_back({nullptr, inputs.q});
  auto reference = traced(withoutTensors(program));
  if (reference->failure)
    throw Mismatch("without vectors: " + reference->failure->text);
  if (!evaluate(reference->outlined(Calls::None), arguments))
    return;
  auto plain =
      compiler::Program::lower(tree, {.contract = false, .calls = Calls::All});
  if (!plain)
    throw Stopped{plain.error()};
  try {
    Oracle(*plain, inputs, /*compiledFunctions=*/false).primal(actual);
  } catch (const Stopped &stopped) {
    if (stopped.failure.code != ErrorCode::KernelFailed)
      throw;
    throw Mismatch("the statement tree ends, interpreted code does not: " +
                   stopped.failure.text);
  }
  compare("interpreted results against the statement tree", actual, expected,
          0);
}

class Checker {
public:
  Checker(const Node &program, unsigned seed, Coverage *coverage)
      : program(program), tree(traced(program, &uses)),
        kernel(detail::make_kernel(*tree, {}, Calls::All)), seed(seed),
        engine(seed), inputs(widthOf(program), seed),
        oracle(kernel.shared()->program, inputs), single(usesSingle(program)),
        half(usesHalf(program)), adds(updates(program)), coverage(coverage) {}

  Verdict::Kind run() {
    if (!primal())
      return Verdict::Racing;
    if (wayOf(seed) != Way::Tangent) // which computes the results as well
      compilePrimal();
    refused = oracle.refusal().has_value();
    if (refused) {
      refusedByName();
    } else {
      reverse();
      again();
    }
    forward();
    if (tame && byOrder)
      throw *byOrder;
    if (tame && !refused && !single)
      differences();
    if (wayOf(seed) == Way::SecondOrder && !refused)
      secondOrder();
    compileDerivative();
    return !tame ? Verdict::Wild : refused ? Verdict::Refused : Verdict::Right;
  }

  /// Compiled code only, in one of several ways, with each number of lanes.
  Verdict::Kind runInLanes() {
    if (!primal())
      return Verdict::Racing;
    refused = oracle.refusal().has_value();
    if (!refused)
      reverse();
    direction = randomDirection();
    along(direction);
    for (int lanes : {1, 2, 4, 8, 16})
      inLanes(lanes);
    return !tame ? Verdict::Wild : refused ? Verdict::Refused : Verdict::Right;
  }

  /// Gradients only, each with several budgets for its tapes.
  Verdict::Kind runInBudgets() {
    if (!primal())
      return Verdict::Racing;
    refused = oracle.refusal().has_value();
    if (!refused) {
      reverse();
      inBudgets();
    }
    return !tame ? Verdict::Wild : refused ? Verdict::Refused : Verdict::Right;
  }

  int judged = 0;

private:
  //===-- On the interpreter ---------------------------------------------===//

  /// False if work items race.
  bool primal() {
    results = inputs.memory;
    interpreter::InterpreterReport report;
    try {
      againstTree(program, tree->outlined(Calls::All), inputs);
      report = oracle.primal(results);
    } catch (const Stopped &stopped) {
      if (stopped.failure.code != ErrorCode::Race)
        throw;
      raceIsFound();
      return false;
    }
    tame = isFinite(toDoubles(results), 1e6) && report.largestAddend < 1e9;
    scale = std::max(1.0, largest(toDoubles(results)));
    Memory shuffled = inputs.memory;
    oracle.primal(shuffled, {.order = seed + 1});
    if (tame)
      compareOrders(shuffled);
    return true;
  }

  /// If results are chaotic in sums, as derivatives will tell, orders differ.
  void compareOrders(const Memory &shuffled) {
    try {
      compare("another order of work items", shuffled, results,
              isNarrow() && !half ? tolerance() : orderTolerance());
    } catch (const Mismatch &mismatch) {
      byOrder = mismatch;
    }
  }

  /// In debug kernels; the gradient of such a kernel may be refused as well.
  void raceIsFound() {
    if (!test::isOnCpu())
      return;
    Kernel debug = emit(program, {.debug = true});
    Workbench bench(device(1), inputs);
    if (!failsWith({ErrorCode::Race},
                   [&] { bench.launch(debug, Mode::Primal); }))
      throw Mismatch("a race: a debug kernel does not find it");
    bench.put(inputs.memory); // what it left may have no race
    bench.putAdjoints(inputs.weights);
    if (!failsWith({ErrorCode::Race, ErrorCode::CannotReplay},
                   [&] { bench.launchFromStart(debug, Mode::Gradient); }))
      throw Mismatch("a race: the gradient of a debug kernel does not find it");
  }

  /// Other errors are thrown.
  template <class F>
  static bool failsWith(std::initializer_list<ErrorCode> codes, F run) {
    try {
      run();
    } catch (const Error &error) {
      if (std::ranges::find(codes, error.code()) == codes.end())
        throw;
      return true;
    }
    return false;
  }

  void reverse() {
    expected = inputs.weights;
    Memory memory = inputs.memory;
    interpreter::InterpreterReport report = oracle.gradient(memory, expected);
    compare("memory after the gradient", memory, results, 0);
    tame &= isFinite(expected, 1e6) && report.largestAddend < 1e9;
    if (tame)
      scale = std::max(scale, largest(expected));
  }

  /// Once more: adjoints of inputs add up.
  void again() {
    if (!tame)
      return;
    Values sums = expected, twice = expected;
    for (size_t array = 0; array < sums.size(); ++array) {
      if (!storedArrays()[array].constant) {
        sums[array] = inputs.weights[array];
        continue;
      }
      for (size_t i = 0; i < sums[array].size(); ++i)
        twice[array][i] += expected[array][i] - inputs.weights[array][i];
    }
    Memory memory = inputs.memory;
    oracle.gradient(memory, sums);
    compare("a second gradient", sums, twice,
            isNarrow() ? tolerance() : orderTolerance());
  }

  /// Results of different precision or order of additions.
  double tolerance() const { return (single ? 1e-3 : 1e-10) * scale; }

  /// Of sums over thousands of work items, of which functions may be steep.
  double orderTolerance() const { return (single ? 1e-1 : 1e-6) * scale; }

  /// Where derivatives are compared: everywhere, or at random.
  std::vector<std::pair<size_t, size_t>> entries() {
    std::vector<std::pair<size_t, size_t>> all;
    for (size_t array = 0; array < inputs.weights.size(); ++array)
      for (size_t i = 0; i < inputs.weights[array].size(); ++i)
        all.emplace_back(array, i);
    if (all.size() > 100) {
      std::ranges::shuffle(all, engine);
      all.resize(all.size() > 100000 ? 6 : 30);
    }
    return all;
  }

  /// The derivative of the weighted results along `direction`.
  double along(Values direction) {
    Memory memory = inputs.memory;
    oracle.tangent(memory, direction);
    compare("results of forward mode", memory, results, 0);
    if (!isFinite(direction, 1e6)) {
      tame = false;
      return 0;
    }
    scale = std::max(scale, largest(direction));
    return dot(inputs.weights, direction);
  }

  void forward() {
    direction = randomDirection();
    along(direction);
    if ((refused && !isByHand) || !tame)
      return;
    Values derivatives = expected;
    for (auto [array, i] : entries()) {
      Values unit = zerosLike(inputs.weights);
      unit[array][i] = 1;
      derivatives[array][i] = along(unit);
    }
    if (!tame)
      return;
    double allowed = isByHand && !isNarrow() ? orderTolerance() : tolerance();
    compare("reverse against forward", expected, derivatives, allowed);
    for (int round = 0; round < 2; ++round, direction = randomDirection()) {
      double length = std::sqrt(dot(direction, direction));
      double slope = along(direction);
      if (tame)
        compare("reverse against forward along a direction",
                dot(expected, direction), slope, allowed * length);
    }
  }

  Values randomDirection() {
    std::uniform_real_distribution<double> real(-1, 1);
    Values values = zerosLike(inputs.weights);
    for (std::vector<double> &array : values)
      for (double &value : array)
        value = static_cast<float>(real(engine));
    return values;
  }

  double lossAt(size_t array, size_t i, double shift) {
    Memory memory = inputs.memory;
    std::vector<double> values = toDoubles(memory[array], DType::F64);
    values[i] += shift;
    fromDoubles(memory[array], DType::F64, values);
    oracle.primal(memory);
    return dot(inputs.weights, toDoubles(memory));
  }

  /// The loss on both sides of an entry.
  struct Sides {
    double below, above, h;
    double slope() const { return (above - below) / (2 * h); }
    double mean() const { return (above + below) / 2; }
  };

  Sides sides(size_t array, size_t i, double h) {
    return {lossAt(array, i, -h), lossAt(array, i, h), h};
  }

  /// Entries where the extrapolations of two pairs of steps disagree stand at a
  /// kink or a jump; where those of the loss itself are not what it is there,
  /// at a point that branches apart from all around it.
  void differences() {
    Values slopes = expected;
    for (auto [array, i] : entries()) {
      if (storedArrays()[array].type != DType::F64)
        continue;
      double h = 1e-4, here = lossAt(array, i, 0);
      Sides far = sides(array, i, h), near = sides(array, i, h / 2),
            nearest = sides(array, i, h / 4);
      double first = (4 * near.slope() - far.slope()) / 3,
             second = (4 * nearest.slope() - near.slope()) / 3,
             limit = (4 * nearest.mean() - near.mean()) / 3;
      if (!(std::abs(first - second) < 1e-7 * scale) ||
          !(std::abs(limit - here) < 1e-9 * std::max(scale, std::abs(here))))
        continue;
      ++judged;
      slopes[array][i] = second;
    }
    compare("reverse against differences", expected, slopes, 1e-6 * scale);
  }

  /// Forward over reverse against forward over forward.
  void secondOrder() {
    product = oracle.hessianProduct(direction);
    if (!tame)
      return;
    Values second = oracle.curvature(direction);
    if (!isFinite(product, 1e6) || !isFinite(second, 1e6))
      return;
    double most = std::max({scale, largest(product), largest(second)});
    compare("forward over reverse against forward over forward",
            dot(direction, product), dot(inputs.weights, second),
            (single ? 1e-2 : 1e-9) * most *
                std::sqrt(dot(direction, direction)));
  }

  //===-- Compiled code --------------------------------------------------===//

  bool isNarrow() const { return inputs.width <= 64; }

  /// On the CPU ranges of few work items run in the order of the interpreter,
  /// but add up what all of them add to one element before it is added there;
  /// the threads of a GPU add as they come, also on the host.
  bool inOrder() const {
    static const bool onCpu = test::isOnCpu();
    return onCpu && isNarrow() && !adds;
  }

  /// Compares bits, or values, of which some are as large as `most`, where the
  /// order of additions may differ. `rerun` is how the interpreter computes
  /// what is wanted: sums are as far off as their roundings take them there.
  template <class T, class F>
  void compareRun(const std::string &what, const T &actual, const T &wanted,
                  F rerun, bool sameOrder = true, double most = 0) {
    if (sameOrder && inOrder())
      return compare(what, actual, wanted, 0);
    if (!tame)
      return;
    double usual = !half && (isNarrow() || test::isOnCpu()) ? tolerance()
                                                            : orderTolerance();
    double allowed = usual * std::max(1.0, most / scale);
    try {
      compare(what, actual, wanted, allowed);
    } catch (const Mismatch &) {
      if (std::optional<Spread> spread = spreadOf(wanted, rerun))
        return compare(what, actual, wanted, allowed, *spread);
      tame = false;
    }
  }

  /// How far roundings of sums move what `rerun` computes; none if they decide
  /// about integers, or end the program.
  template <class T, class F>
  static std::optional<Spread> spreadOf(const T &wanted, F rerun) {
    Spread spread;
    for (uint64_t seed = 1; seed <= Spread::runs; ++seed) {
      try {
        if (!spread.add(rerun({.roundings = seed}), wanted))
          return std::nullopt;
      } catch (const Stopped &) {
        return std::nullopt;
      }
    }
    return spread;
  }

  auto primals() {
    return [this](Variant variant) {
      Memory memory = inputs.memory;
      oracle.primal(memory, variant);
      return memory;
    };
  }

  auto tangents() {
    return [this](Variant variant) {
      Memory memory = inputs.memory;
      Values tangents = direction;
      oracle.tangent(memory, tangents, variant);
      return tangents;
    };
  }

  auto gradients() {
    return [this](Variant variant) {
      Memory memory = inputs.memory;
      Values adjoints = inputs.weights;
      oracle.gradient(memory, adjoints, variant);
      return adjoints;
    };
  }

  void cover(Covered mode) {
    if (coverage)
      coverage->add(uses, mode);
  }

  void compilePrimal() {
    Workbench bench(device(1), inputs);
    bench.launch(kernel, Mode::Primal);
    compareRun("compiled results", bench.get(), results, primals());
    cover(Covered::Primal);
  }

  void compileDerivative() {
    Way way = wayOf(seed);
    if (refused || way == Way::Tangent)
      return compileTangent();
    switch (way) {
    case Way::SecondOrder:
      return compileSecondOrder();
    case Way::Debug:
      // Functions are parts of it: their adjoints add up in another order.
      gradientOf("debug", emit(program, {.debug = true}), 1,
                 !callsFunctions(program));
      break;
    case Way::FourThreads:
      gradientOf("four threads", kernel, 4);
      break;
    case Way::Deterministic:
      deterministic();
      break;
    case Way::Recorded:
      recorded();
      break;
    case Way::InitialState:
      fromInitialState();
      break;
    default:
      plain();
    }
    cover(Covered::Gradient);
  }

  void compileTangent(const std::string &with = "") {
    Workbench bench(device(1), inputs);
    bench.putTangents(direction);
    bench.launch(kernel, Mode::Tangent);
    compareRun(with + "compiled tangents", bench.tangents(), tangents()({}),
               tangents());
    compareRun(with + "results of compiled tangents", bench.get(), results,
               primals());
    cover(Covered::Tangent);
  }

  void compileSecondOrder() {
    Workbench bench(device(1), inputs);
    bench.putTangents(direction);
    bench.putAdjoints(inputs.weights);
    bench.launchFromStart(kernel.gradient(), Mode::Tangent);
    compareRun("gradient after its tangent", bench.adjoints(), expected,
               gradients(), false);
    double most = isFinite(product, 1e12) ? largest(product) : 0;
    auto products = [this](Variant variant) {
      return oracle.hessianProduct(direction, variant);
    };
    compareRun("compiled tangents of a gradient", bench.adjointTangents(),
               product, products, false, most);
    compare("memory after the tangent of a gradient", bench.get(),
            inputs.memory, 0);
    cover(Covered::Second);
  }

  /// By hand: a launch, then its gradient.
  void plain() {
    if (oracle.overwrites()) {
      if (std::optional<Values> adjoints = ofWhatIsLeft())
        compareRun("gradient of intact memory", *adjoints, expected,
                   gradients(), false);
      return fromInitialState();
    }
    gradientOf("compiled", kernel, 1);
  }

  /// What work items read of one element has an adjoint that all add to.
  void gradientOf(const std::string &what, const Kernel &of, int threads,
                  bool sameOrder = false) {
    Workbench bench(device(threads), inputs);
    compareRun(what + " gradient", gradientOn(bench, of), expected, gradients(),
               sameOrder);
    compareRun(what + " results", bench.get(), results, primals(),
               threads == 1);
  }

  /// Leaves memory as the primal leaves it.
  Values gradientOn(Workbench &bench, const Kernel &of) {
    if (oracle.overwrites()) {
      bench.putAdjoints(inputs.weights);
      bench.launchFromStart(of, Mode::Gradient);
      bench.launch(of, Mode::Primal);
      return bench.adjoints();
    }
    bench.launch(of, Mode::Primal);
    bench.putAdjoints(inputs.weights);
    bench.launch(of, Mode::Gradient);
    return bench.adjoints();
  }

  void fromInitialState() {
    Workbench bench(device(1), inputs);
    bench.putAdjoints(inputs.weights);
    bench.launchFromStart(kernel, Mode::Gradient);
    compareRun("gradient from the initial state", bench.adjoints(), expected,
               gradients(), false);
    compare("memory after a gradient from the initial state", bench.get(),
            inputs.memory, 0);
  }

  void recorded() {
    Workbench bench(device(1), inputs);
    Tape tape;
    {
      auto recording = tape.record();
      bench.launch(kernel, Mode::Primal);
    }
    bench.putAdjoints(inputs.weights);
    tape.backward();
    compareRun("recorded gradient", bench.adjoints(), expected, gradients(),
               false);
    compareRun("recorded results", bench.get(), results, primals());
  }

  /// What a deterministic kernel leaves; nothing if it has no gradient.
  struct Outcome {
    Values adjoints;
    Memory memory;
  };
  std::optional<Outcome> deterministicOn(int threads, int lanes) {
    return outcomeOf({.deterministic = true, .lanes = lanes}, threads);
  }

  /// Nothing as well if its budget is too small.
  std::optional<Outcome> outcomeOf(KernelOptions options, int threads) {
    Kernel same = emit(program, options);
    Workbench bench(device(threads), inputs);
    Outcome outcome;
    ErrorCode gaveUp =
        options.tape_budget ? ErrorCode::OutOfMemory : ErrorCode::CannotReplay;
    if (failsWith({ErrorCode::CannotReplay, ErrorCode::BadKernel, gaveUp},
                  [&] { outcome.adjoints = gradientOn(bench, same); }))
      return std::nullopt;
    outcome.memory = bench.get();
    return outcome;
  }

  void expectSame(const std::string &where, const std::optional<Outcome> &other,
                  const std::optional<Outcome> &alone) {
    if (other.has_value() != alone.has_value())
      throw Mismatch("a deterministic gradient: only refused " + where);
    if (!alone)
      return;
    compare("deterministic gradient " + where, other->adjoints, alone->adjoints,
            0);
    compare("deterministic results " + where, other->memory, alone->memory, 0);
  }

  /// The same bits for any number of threads, if it has a gradient at all.
  void deterministic() {
    std::optional<Outcome> alone = deterministicOn(1, 0);
    if (!alone)
      return;
    compareRun("deterministic gradient", alone->adjoints, expected, gradients(),
               false);
    compareRun("deterministic results", alone->memory, results, primals(),
               false);
    expectSame("on four threads", deterministicOn(4, 0), alone);
  }

  /// Bits of deterministic kernels do not depend on lanes, those of others
  /// only where additions meet.
  void inLanes(int lanes) {
    std::string with = "with " + std::to_string(lanes) + " lanes, ";
    if (!refused && seed % 4 == 1) {
      std::optional<Outcome> outcome = deterministicOn(1, lanes);
      if (lanes == 1)
        oneLane = outcome;
      return expectSame(with, outcome, oneLane);
    }
    kernel = emit(program, {.lanes = lanes});
    if (refused || seed % 4 == 0)
      return compileTangent(with);
    gradientOf(with + "compiled", kernel, seed % 4 == 2 ? 1 : 4);
  }

  /// Debug kernels of GPUs have no tiles. There, sums of the program over work
  /// items whose tapes do not fit come in another order.
  void inBudgets() {
    KernelOptions options{.debug = seed % 3 > 0, .deterministic = true};
    std::optional<Outcome> whole = outcomeOf(options, 1);
    if (!whole)
      return;
    bool sameBits = !adds || test::isOnCpu();
    for (size_t bytes : {size_t(64) << seed % 8, size_t(3000), size_t(40000)}) {
      options.tape_budget = bytes;
      std::string where = "within " + std::to_string(bytes) + " bytes";
      std::optional<Outcome> some = outcomeOf(options, 1);
      if (some && sameBits)
        expectSame(where, some, whole);
      else if (some)
        compareRun("gradient " + where, some->adjoints, expected, gradients(),
                   false);
    }
  }

  /// The gradient by hand of a launch that may have overwritten what it needs:
  /// none, unless memory is found to be as the gradient needs it.
  std::optional<Values> ofWhatIsLeft() {
    Workbench bench(device(1), inputs);
    bench.launch(kernel, Mode::Primal);
    bench.putAdjoints(inputs.weights);
    if (failsWith({ErrorCode::CannotReplay},
                  [&] { bench.launch(kernel, Mode::Gradient); }))
      return std::nullopt;
    compareRun("memory that is intact", bench.get(), results, primals());
    return bench.adjoints();
  }

  void refusedByName() {
    Failure failure = *oracle.refusal();
    if (failure.code != ErrorCode::CannotReplay)
      throw Stopped{failure};
    std::optional<Values> adjoints = ofWhatIsLeft();
    isByHand = adjoints.has_value();
    if (!isByHand)
      return;
    expected = *adjoints;
    tame &= isFinite(expected, 1e6);
    if (tame)
      scale = std::max(scale, largest(expected));
  }

  const Node &program;
  Uses uses;
  std::shared_ptr<detail::TracedKernel> tree;
  Kernel kernel;
  unsigned seed;
  std::mt19937 engine;
  Inputs inputs;
  Oracle oracle;
  bool single, half, adds, tame = true, refused = false;
  bool isByHand = false; ///< a gradient that there is of intact memory only
  Coverage *coverage;
  std::optional<Mismatch> byOrder; ///< if work items run in another order
  Memory results;                  ///< what the primal leaves
  Values expected;                 ///< the gradient
  Values direction;                ///< of tangents
  Values product;                  ///< of the Hessian with the direction
  std::optional<Outcome> oneLane;  ///< of a deterministic kernel
  double scale = 1;
};

Verdict::Kind kindOf(const Stopped &stopped) {
  switch (stopped.failure.code) {
  case ErrorCode::Race:
  case ErrorCode::OutOfRange:
    return stopped.inPrimal ? Verdict::Invalid : Verdict::Wrong;
  case ErrorCode::KernelFailed: // too many operations, or a step of 0
    return Verdict::Wild;
  default:
    return Verdict::Wrong;
  }
}

} // namespace

/// Mesa's driver for the CPU has, which says nothing of the program.
static bool endsLoops(const Error &error) {
  return error.code() == ErrorCode::KernelFailed &&
         std::string_view(error.what()).find("ends the loops") !=
             std::string_view::npos;
}

/// The verdict that `judge` gives, or what its failure means.
template <class F> static Verdict verdictOf(F judge) {
  try {
    return judge();
  } catch (const InvalidProgram &error) {
    return {Verdict::Invalid, error.what()};
  } catch (const Mismatch &error) {
    return {Verdict::Wrong, error.what()};
  } catch (const Stopped &stopped) {
    return {kindOf(stopped), stopped.failure.text};
  } catch (const Error &error) {
    return {endsLoops(error) ? Verdict::Wild : Verdict::Wrong, error.what()};
  }
}

std::string kindOf(const Verdict &verdict) {
  return verdict.text.substr(0, verdict.text.find(':'));
}

Verdict check(const Node &program, unsigned seed, Coverage *coverage) {
  return verdictOf([&]() -> Verdict {
    Checker checker(program, seed, coverage);
    Verdict::Kind kind = checker.run();
    return {kind, "", checker.judged};
  });
}

Verdict checkLanes(const Node &program, unsigned seed) {
  return verdictOf([&]() -> Verdict {
    return {Checker(program, seed, nullptr).runInLanes()};
  });
}

Verdict checkBudgets(const Node &program, unsigned seed) {
  return verdictOf([&]() -> Verdict {
    return {Checker(program, seed, nullptr).runInBudgets()};
  });
}

Verdict checkLowering(const Node &program, unsigned seed) {
  return verdictOf([&]() -> Verdict {
    auto tree = traced(program);
    if (tree->failure)
      return {Verdict::Wrong, tree->failure->text};
    try {
      againstTree(program, tree->outlined(Calls::All),
                  Inputs(widthOf(program), seed));
      return {};
    } catch (const Stopped &stopped) {
      if (stopped.failure.code != ErrorCode::Race)
        throw;
      return {Verdict::Racing};
    }
  });
}

} // namespace costate::property
