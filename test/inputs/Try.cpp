#include "inputs/Try.h"

#include "api/KernelImpl.h"
#include "costate/costate.h"
#include "inputs/Files.h"
#include "inputs/Texts.h"
#include "run/Npy.h"
#include "run/Tensor.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace costate::inputs {

using detail::Mode;

namespace {

/// An error that is no answer to the input.
struct Problem {
  std::string text;
};

std::string nameOf(Mode mode) {
  return mode == Mode::Primal     ? "the primal"
         : mode == Mode::Gradient ? "the gradient"
                                  : "the tangent";
}

bool isAnswer(ErrorCode code) {
  return code == ErrorCode::BadKernel || code == ErrorCode::CannotReplay ||
         code == ErrorCode::NotDifferentiable ||
         code == ErrorCode::MissingGradient;
}

/// The text of the kernel in a mode; empty if there is none.
std::string printed(const Kernel &kernel, Mode mode) {
  try {
    return kernel.ir(mode);
  } catch (const Error &error) {
    if (isAnswer(error.code()))
      return "";
    throw Problem{nameOf(mode) + ": " + error.what()};
  }
}

/// What is printed must be read again.
void readAgain(const std::string &text, Mode mode) {
  try {
    Kernel::from_ir(text);
  } catch (const Error &error) {
    throw Problem{"what " + nameOf(mode) +
                  " prints is not read again: " + error.what() + "\n" + text};
  }
}

//===-- Running -----------------------------------------------------------===//

/// Small arrays and numbers for the arguments of a kernel.
class Arguments {
public:
  explicit Arguments(const Kernel &kernel) {
    for (const ArgumentType &type : kernel.arguments())
      add(type);
  }

  std::vector<interpreter::InterpreterArgument> forInterpreter() {
    std::vector<interpreter::InterpreterArgument> all;
    for (size_t k = 0; k < arrays.size(); ++k)
      all.push_back({types[k].rank < 0 ? nullptr : &arrays[k], 2, 0.75});
    return all;
  }

  std::vector<AnyArray> onDevice(Device device) const {
    std::vector<AnyArray> all(arrays.size());
    for (size_t k = 0; k < arrays.size(); ++k) {
      if (types[k].rank < 0)
        continue;
      all[k] = device.array(types[k].dtype, arrays[k].extents);
      all[k].write(arrays[k].bytes.data(), arrays[k].bytes.size());
    }
    return all;
  }

  std::vector<detail::ArgumentValue>
  forLaunch(const std::vector<AnyArray> &onDevice) const {
    std::vector<detail::ArgumentValue> all;
    for (size_t k = 0; k < arrays.size(); ++k) {
      if (types[k].rank >= 0)
        all.emplace_back(onDevice[k]);
      else if (isFloat(types[k].dtype))
        all.emplace_back(0.75);
      else if (types[k].dtype == DType::Bool)
        all.emplace_back(true);
      else
        all.emplace_back(2);
    }
    return all;
  }

  /// The first array whose contents differ; -1 if none does.
  int differing(const std::vector<AnyArray> &onDevice) const {
    for (size_t k = 0; k < arrays.size(); ++k) {
      if (types[k].rank < 0)
        continue;
      std::vector<std::byte> bytes(arrays[k].bytes.size());
      onDevice[k].read(bytes.data(), bytes.size());
      if (!agree(types[k].dtype, bytes, arrays[k].bytes))
        return int(k);
    }
    return -1;
  }

private:
  void add(ArgumentType type) {
    types.push_back(type);
    interpreter::HostArray array;
    size_t size = 1;
    for (int d = 0; d < type.rank; ++d) {
      array.extents.push_back(type.rank > 4 ? 2 : 3);
      size *= array.extents.back();
    }
    array.bytes.resize(size * sizeOf(type.dtype));
    for (size_t k = 0; k < size; ++k)
      fill(array.bytes.data() + k * sizeOf(type.dtype), type.dtype, k);
    arrays.push_back(std::move(array));
  }

  static void fill(std::byte *at, DType type, size_t k) {
    double real = 0.25 + 0.5 * double(k % 5);
    float single = float(real);
    int64_t integer = type == DType::Bool ? k % 2 : k % 3;
    const void *from = type == DType::F64   ? static_cast<void *>(&real)
                       : type == DType::F32 ? static_cast<void *>(&single)
                                            : static_cast<void *>(&integer);
    std::memcpy(at, from, sizeOf(type));
  }

  template <class T>
  static bool agreeAs(const std::vector<std::byte> &a,
                      const std::vector<std::byte> &b) {
    for (size_t at = 0; at < a.size(); at += sizeof(T)) {
      T x, y;
      std::memcpy(&x, &a[at], sizeof(T));
      std::memcpy(&y, &b[at], sizeof(T));
      if (!(x == y || (x != x && y != y)))
        return false;
    }
    return true;
  }

  static bool agree(DType type, const std::vector<std::byte> &a,
                    const std::vector<std::byte> &b) {
    if (type == DType::F64)
      return agreeAs<double>(a, b);
    return type == DType::F32 ? agreeAs<float>(a, b) : a == b;
  }

  std::vector<ArgumentType> types;
  std::vector<interpreter::HostArray> arrays;
};

bool has(const std::string &text, const char *part) {
  return text.find(part) != text.npos;
}

/// The interpreter knows no blocks.
bool hasBlocks(const std::string &text) {
  return has(text, "costate.shared") || has(text, "costate.group");
}

/// Whether the interpreter runs the kernel to its end.
bool interprets(const Kernel &kernel, Arguments &arguments,
                const std::string &text) {
  auto code = kernel.shared()->program->interpret(compiler::Mode::Primal, {},
                                                  /*compiledFunctions=*/true);
  if (!code)
    throw Problem{"the interpreter: " + code.error().text};
  auto list = arguments.forInterpreter();
  auto report = code->interpreter.run(list, {.steps = 20000});
  // A tape of the text itself need not be right.
  if (!report && report.error().code == ErrorCode::Internal &&
      !has(text, "tape."))
    throw Problem{"the interpreter: " + report.error().text};
  return bool(report);
}

/// Compiled code gives what the interpreter gives.
void runs(const std::string &text) {
  Kernel kernel = Kernel::from_ir(text, "", {.debug = true});
  Arguments arguments(kernel);
  static Device device = Device::open("cpu", {.threads = 1});
  std::vector<AnyArray> arrays = arguments.onDevice(device);
  if (hasBlocks(text) || !interprets(kernel, arguments, text))
    return;
  try {
    kernel.launch_with(Mode::Primal, arguments.forLaunch(arrays));
  } catch (const Error &error) {
    throw Problem{std::string("compiled code: ") + error.what()};
  }
  if (int k = arguments.differing(arrays); k >= 0)
    throw Problem{"compiled code gives another argument " +
                  std::to_string(k + 1) + " than the interpreter"};
}

void tryKernel(const std::string &text) {
  Kernel kernel;
  try {
    kernel = Kernel::from_ir(text);
  } catch (const Error &error) {
    if (error.code() == ErrorCode::BadKernel)
      return;
    throw Problem{std::string("reading: ") + error.what()};
  }
  for (Mode mode : {Mode::Primal, Mode::Gradient, Mode::Tangent})
    if (std::string ir = printed(kernel, mode); !ir.empty())
      readAgain(ir, mode);
  runs(text);
}

void tryNpy(const std::string &bytes) {
  auto path = std::filesystem::temp_directory_path() /
              ("costate-" + std::to_string(getpid()) + ".npy");
  std::ofstream(path, std::ios::binary) << bytes;
  auto tensor = run::readNpy(path.string());
  std::filesystem::remove(path);
  if (!tensor && tensor.error().code != ErrorCode::BadFile)
    throw Problem{tensor.error().text};
  if (tensor &&
      tensor->bytes.size() != size_t(tensor->size()) * sizeOf(tensor->type))
    throw Problem{"an array of " + std::to_string(tensor->bytes.size()) +
                  " bytes"};
}

void tryArgument(const std::string &text) {
  auto tensor = run::parseTensor(text);
  if (!tensor && tensor.error().code != ErrorCode::BadArgument &&
      tensor.error().code != ErrorCode::OutOfMemory &&
      tensor.error().code != ErrorCode::BadFile)
    throw Problem{tensor.error().text};
  if (!tensor)
    return;
  auto again = run::parseTensor(print(*tensor));
  if (!again || again->shape != tensor->shape)
    throw Problem{"is printed as " + print(*tensor)};
}

} // namespace

std::string problemWith(Input kind, const std::string &input) {
  try {
    kind == Input::Kernel ? tryKernel(input)
    : kind == Input::Npy  ? tryNpy(input)
                          : tryArgument(input);
    return "";
  } catch (const Problem &problem) {
    return problem.text;
  } catch (const std::exception &error) {
    return std::string("throws ") + error.what();
  }
}

Input kindOf(uint64_t seed) {
  return seed % 8 == 6   ? Input::Npy
         : seed % 8 == 7 ? Input::Argument
                         : Input::Kernel;
}

std::string inputOf(uint64_t seed) {
  switch (kindOf(seed)) {
  case Input::Npy:
    return damagedNpy(seed);
  case Input::Argument:
    return damagedArgument(seed);
  default:
    return damagedText(seed);
  }
}

} // namespace costate::inputs
