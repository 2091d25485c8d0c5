#include "property/Singles.h"

#include <bit>

namespace costate::property {

static bool onlySingles = false;

void useSingles() { onlySingles = true; }
bool usesSingles() { return onlySingles; }

static void narrow(DType &type) {
  type = type == DType::F64 ? DType::F32 : type;
}

static void narrow(syntax::Block &block) {
  for (syntax::Statement &statement : block) {
    if (statement.kind == syntax::Kind::Const && statement.type == DType::F64)
      statement.bits = std::bit_cast<uint32_t>(
          static_cast<float>(std::bit_cast<double>(statement.bits)));
    narrow(statement.type);
    for (syntax::Block &inner : statement.blocks)
      narrow(inner);
  }
}

void narrow(syntax::Kernel &kernel) {
  for (syntax::Argument &argument : kernel.arguments)
    narrow(argument.type);
  for (syntax::Variable &variable : kernel.variables)
    narrow(variable.type);
  for (syntax::Local &local : kernel.locals)
    narrow(local.type);
  for (DType &type : kernel.values)
    narrow(type);
  narrow(kernel.body);
  for (syntax::Kernel &function : kernel.functions)
    narrow(function);
}

} // namespace costate::property
