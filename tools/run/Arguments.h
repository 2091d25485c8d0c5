#pragma once
/// The arguments of one run: primal values, adjoints and tangents.

#include "compiler/Compiler.h"
#include "run/Tensor.h"

#include <map>

namespace costate::run {

/// Tensors by number of the argument.
using ByArgument = std::map<uint32_t, Tensor>;

/// Reads `N=SPEC`.
Result<std::pair<uint32_t, std::string>> parseNumbered(const std::string &text);

/// Checks the arguments of the command line against what the kernel declares.
Result<> checkArguments(const std::vector<syntax::Argument> &declared,
                        const std::vector<Tensor> &given);

/// Which arguments have an adjoint or tangent: those in `list` (`0,2`), or
/// every float array.
Result<std::vector<bool>>
activeArguments(const std::vector<syntax::Argument> &declared,
                const std::string &list);

/// Adjoints or tangents of the active arguments: the seeds where given, zeros
/// elsewhere.
Result<ByArgument> makeSeeds(const std::vector<std::string> &specs,
                             const std::vector<Tensor> &given,
                             const std::vector<bool> &active);

/// Refuses to drop the derivative of an argument that is not in `active`.
Result<> checkOutputs(const std::vector<runtime::Access> &accesses,
                      const std::vector<bool> &active);

/// All tensors of a run.
struct Tensors {
  std::vector<Tensor> primal;
  ByArgument derived; ///< adjoints or tangents
  /// Versions of arguments by argument and part, scratch copies (part -1) and
  /// owners of elements (-2); made when they are first asked for.
  std::map<std::pair<uint32_t, int64_t>, Tensor> copies;

  Tensor &of(const runtime::Parameter &parameter);
};

/// The slots that compiled code reads (see code/KernelCode.h).
std::vector<uint64_t> slots(const std::vector<runtime::Parameter> &parameters,
                            Tensors &tensors);

/// The arguments of the interpreter, which has copies of the arrays.
class InterpreterArguments {
public:
  InterpreterArguments(const std::vector<runtime::Parameter> &parameters,
                       Tensors &tensors);

  std::span<interpreter::InterpreterArgument> list() { return arguments; }
  void copyBack();

private:
  std::vector<Tensor *> tensors;
  std::vector<interpreter::HostArray> arrays;
  std::vector<interpreter::InterpreterArgument> arguments;
};

} // namespace costate::run
