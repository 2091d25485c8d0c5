#pragma once
/// A program that is compiled from kernel IR.

#include "compiler/Compiler.h"
#include "compiler/ObjectCode.h"

namespace costate::compiler {

class SourceProgram : public Program {
public:
  static Result<std::shared_ptr<SourceProgram>>
  lower(const syntax::Kernel &kernel, Options options);
  static Result<std::shared_ptr<SourceProgram>>
  parse(const std::string &text, const std::string &fileName,
        const std::string &kernel, Options options);

  /// Code that can be kept.
  virtual Result<ObjectCode> build(const Derivation &derivation) = 0;
  using Program::compile;
  Result<runtime::KernelCode> compile(const Derivation &derivation) override;
};

} // namespace costate::compiler
