/// Compiles and runs a kernel of an .mlir file, its gradient or its tangent.

#include "cache/Settings.h"
#include "cache/Store.h"
#include "run/Arguments.h"
#include "run/DeviceText.h"
#include "run/Npy.h"
#include "runtime/cpu/CpuDevice.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace costate;
using namespace costate::run;
using compiler::Mode;

namespace {

struct Command {
  std::string file, kernel, active, emit, chip;
  bool grad = false, jvp = false, debug = false, deterministic = false,
       fastMath = false, interpret = false, times = false;
  int threads = 0;
  std::vector<std::string> arguments, seeds, outputs, derivedOutputs;
  std::vector<uint32_t> prints;

  Mode mode() const {
    return grad ? Mode::Gradient : jvp ? Mode::Tangent : Mode::Primal;
  }
};

void declareRun(CLI::App &app, Command &command) {
  app.add_option("file", command.file, "text of kernel IR")->required();
  app.add_option("--kernel", command.kernel, "its kernel, if it has several");
  auto grad = app.add_flag("--grad", command.grad,
                           "run the gradient; the kernel itself before, if the "
                           "gradient reads back what it stores");
  app.add_flag("--jvp", command.jvp, "run the tangent")->excludes(grad);
  app.add_option("--active", command.active,
                 "arguments with adjoint or tangent, as 0,2; default: every "
                 "float array");
  app.add_flag("--debug", command.debug, "check every index");
  app.add_flag("--deterministic", command.deterministic,
               "the same bits for any number of threads");
  app.add_flag("--fast-math", command.fastMath, "allow reassociation");
  app.add_flag("--interpret", command.interpret,
               "run on the reference interpreter, which checks every index and "
               "refuses races");
  app.add_flag(
      "--times", command.times,
      "say how long it took to compile, as compile_ms, or as cached_ms "
      "if the cache had it");
  app.add_option("--threads", command.threads, "threads that run ranges");
  auto emit = app.add_option("--emit", command.emit,
                             "print kernel IR, LLVM IR for the CPU, or code "
                             "for a GPU instead");
  std::vector<std::string> languages = deviceLanguages();
  languages.insert(languages.begin(), {"ir", "llvm"});
  emit->check(CLI::IsMember(languages));
  app.add_option("--chip", command.chip,
                 "the GPU of --emit: sm_90, or features of Vulkan, as "
                 "vulkan1.3;subgroup=32;f64; default: sm_90, or most of them")
      ->needs(emit);
}

void declareData(CLI::App &app, Command &command) {
  app.add_option("--arg", command.arguments,
                 "next argument: f64=0.1, f64[2]=1,2, f64[9]:0 or x.npy")
      ->allow_extra_args(false);
  app.add_option("--seed,--tangent", command.seeds,
                 "adjoint or tangent of an argument, as 1=f64[]=1; default 0")
      ->allow_extra_args(false);
  app.add_option("--print", command.prints,
                 "arguments to print; default: every array")
      ->allow_extra_args(false);
  app.add_option("--out", command.outputs, "write an argument, as 1=y.npy")
      ->allow_extra_args(false);
  app.add_option("--adjoint-out,--tangent-out", command.derivedOutputs,
                 "write an adjoint or tangent, as 0=dx.npy")
      ->allow_extra_args(false);
}

Result<std::string> readText(const std::string &path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file)
    return Failure{ErrorCode::BadFile, path + ": cannot be read"};
  return text.str();
}

/// One run, from the command line to the printed arrays.
class Run {
public:
  explicit Run(const Command &command) : command(command) {}

  Result<> execute() {
    for (auto step : {&Run::load, &Run::emit, &Run::bind, &Run::launch,
                      &Run::write, &Run::print}) {
      Result<> done = (this->*step)();
      if (!done || finished)
        return done;
    }
    return {};
  }

private:
  Result<> load() {
    Result<std::string> text = readText(command.file);
    if (!text)
      return text.error();
    compiler::Options options{command.debug, command.deterministic,
                              command.fastMath};
    auto settings = cache::settingsFor({});
    if (!settings)
      return settings.error();
    std::shared_ptr<cache::Store> store;
    if (settings->enabled && !settings->folder.empty())
      store = std::make_shared<cache::Store>(settings->folder, settings->limit);
    auto parsed = compiler::Program::parse(*text, command.file, command.kernel,
                                           options, store);
    if (!parsed)
      return parsed.error();
    program = *parsed;
    if (command.mode() == Mode::Primal)
      return {};
    auto flags = activeArguments(program->arguments(), command.active);
    if (!flags)
      return flags.error();
    active = *flags;
    return {};
  }

  Result<> emit() {
    if (command.emit.empty())
      return {};
    bool isForGpu = command.emit != "ir" && command.emit != "llvm";
    if (!isForGpu && !command.chip.empty())
      return Failure{ErrorCode::BadFile,
                     "--chip is for --emit of device code: " + languagesText()};
    auto text = isForGpu ? printForGpu()
                         : program->print(command.mode(), active,
                                          command.emit == "llvm");
    if (!text)
      return text.error();
    std::cout << *text;
    finished = true;
    return {};
  }

  static std::string languagesText() {
    std::string text;
    for (const std::string &language : deviceLanguages())
      text += (text.empty() ? "" : ", ") + language;
    return text;
  }

  Result<std::string> printForGpu() {
    return deviceText(*program, {command.mode(), active}, command.emit,
                      command.chip.empty() ? usualChip(command.emit)
                                           : command.chip);
  }

  Result<> bind() {
    for (const std::string &spec : command.arguments) {
      Result<Tensor> tensor = parseTensor(spec);
      if (!tensor)
        return tensor.error();
      tensors.primal.push_back(*tensor);
    }
    if (Result<> fits = checkArguments(program->arguments(), tensors.primal);
        !fits)
      return fits.error();
    auto seeds = makeSeeds(command.seeds, tensors.primal, active);
    if (!seeds)
      return seeds.error();
    tensors.derived = *seeds;
    return {};
  }

  Result<> launch() {
    if (command.interpret)
      return interpret();
    auto code = compile();
    if (!code)
      return code.error();
    if (Result<> complete = checkOutputs(code->accesses, active); !complete)
      return complete;
    auto device = runtime::openCpu(command.threads, 0);
    if (!device)
      return device.error();
    if (command.mode() == Mode::Gradient && looksBack(*code))
      if (Result<> done = record(**device); !done)
        return done;
    return launchOn(**device, *code);
  }

  Result<runtime::KernelCode> compile() {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    auto start = std::chrono::steady_clock::now();
    auto code = program->compile(command.mode(), active);
    Milliseconds taken = std::chrono::steady_clock::now() - start;
    if (command.times)
      std::cerr << (code && code->isLoaded ? "cached_ms " : "compile_ms ")
                << taken.count() << '\n';
    return code;
  }

  /// A gradient that reads what the kernel stored, or what it has overwritten,
  /// is that of a launch that begins with the given arguments.
  static bool looksBack(const runtime::KernelCode &code) {
    return !code.overwritten.empty() ||
           std::any_of(
               code.accesses.begin(), code.accesses.end(),
               [](const runtime::Access &access) { return access.reloaded; });
  }

  Result<> interpret() {
    auto kernel = program->interpret(command.mode(), active);
    if (!kernel)
      return kernel.error();
    if (Result<> complete = checkOutputs(kernel->code.accesses, active);
        !complete)
      return complete;
    if (command.mode() == Mode::Gradient && looksBack(kernel->code)) {
      auto before = program->interpret(Mode::Recording, active);
      Result<> done = before ? interpret(*before) : before.error();
      if (!done)
        return done;
    }
    return interpret(*kernel);
  }

  Result<> interpret(const compiler::Interpretable &kernel) {
    InterpreterArguments arguments(kernel.code.parameters, tensors);
    auto report = kernel.interpreter.run(arguments.list());
    if (!report)
      return report.error();
    arguments.copyBack();
    return {};
  }

  Result<> record(runtime::Device &device) {
    auto code = program->compile(Mode::Recording, active);
    return code ? launchOn(device, *code) : code.error();
  }

  Result<> launchOn(runtime::Device &device, const runtime::KernelCode &code) {
    std::vector<uint64_t> arguments = slots(code.parameters, tensors);
    std::vector<runtime::Buffer> adjoints;
    if (command.mode() == Mode::Gradient)
      for (auto &[number, tensor] : tensors.derived)
        adjoints.push_back({tensor.bytes.data(), tensor.bytes.size()});
    runtime::LaunchRequest request{&code, arguments, adjoints,
                                   command.deterministic};
    auto report = device.launch(request);
    if (!report)
      return report.error();
    return device.synchronize();
  }

  Result<> write() {
    for (const std::string &output : command.outputs)
      if (Result<> done = writeOne(output, nullptr); !done)
        return done;
    for (const std::string &output : command.derivedOutputs)
      if (Result<> done = writeOne(output, &tensors.derived); !done)
        return done;
    return {};
  }

  Result<> writeOne(const std::string &output, const ByArgument *from) {
    auto numbered = parseNumbered(output);
    if (!numbered)
      return numbered.error();
    auto [number, path] = *numbered;
    if (!from && number < tensors.primal.size())
      return writeNpy(path, tensors.primal[number]);
    if (from && from->contains(number))
      return writeNpy(path, from->at(number));
    return Failure{ErrorCode::BadArgument,
                   "`" + output + "`: there is no such array"};
  }

  Result<> print() {
    for (uint32_t number : command.prints)
      if (number >= tensors.primal.size())
        return Failure{ErrorCode::BadArgument, "there is no argument " +
                                                   std::to_string(number) +
                                                   " to print"};
    for (uint32_t k = 0; k < tensors.primal.size(); ++k)
      if (command.prints.empty() ? !tensors.primal[k].isScalar : isChosen(k))
        printOne(k);
    return {};
  }

  bool isChosen(uint32_t number) const {
    return std::find(command.prints.begin(), command.prints.end(), number) !=
           command.prints.end();
  }

  void printOne(uint32_t k) const {
    std::cout << k << ": " << costate::run::print(tensors.primal[k]) << '\n';
    const char *name = command.grad ? ".grad" : ".dual";
    if (tensors.derived.contains(k))
      std::cout << k << name << ": "
                << costate::run::print(tensors.derived.at(k)) << '\n';
  }

  const Command &command;
  std::shared_ptr<compiler::Program> program;
  std::vector<bool> active;
  Tensors tensors;
  bool finished = false;
};

Result<> execute(const Command &command) {
  try {
    return Run(command).execute();
  } catch (const std::bad_alloc &) {
    return Failure{ErrorCode::OutOfMemory,
                   "the arguments do not fit into memory; make them smaller"};
  }
}

} // namespace

int main(int argc, char **argv) {
  Command command;
  CLI::App app("Compiles and runs a kernel of an .mlir file, its gradient or "
               "its tangent.");
  declareRun(app, command);
  declareData(app, command);
  CLI11_PARSE(app, argc, argv);
  Result<> done = execute(command);
  if (done)
    return 0;
  std::cerr << "costate-run: " << done.error().text << '\n';
  return 1;
}
