#include "api/VersionArrays.h"

#include "api/Checked.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::KernelCode;
using Role = runtime::Parameter::Role;

runtime::ArrayStorage *detail::arrayOf(const Call &call,
                                       runtime::Parameter parameter) {
  runtime::ArrayStorage *array = call.arguments[parameter.argument].array.get();
  if (parameter.role == Role::Adjoint)
    array = array->grad.get();
  for (uint32_t order = 0; order < parameter.order; ++order)
    array = checked(array->tangent()).get();
  return array;
}

VersionArrays::VersionArrays(const Call &call, const KernelCode &code,
                             std::shared_ptr<runtime::CopyMemory> room)
    : memory(std::move(room)) {
  for (runtime::Parameter parameter : code.parameters)
    if (parameter.role == Role::Version)
      arrays.push_back(
          {parameter,
           checked(memory->take(arrayOf(call, parameter)->buffer.bytes))});
}

size_t VersionArrays::bytesOf(const Call &call, const KernelCode &code) {
  size_t sum = 0;
  for (runtime::Parameter parameter : code.parameters)
    if (parameter.role == Role::Version)
      sum += arrayOf(call, parameter)->buffer.bytes;
  return sum;
}

runtime::Buffer VersionArrays::find(runtime::Parameter parameter) const {
  for (const Version &version : arrays)
    if (version.parameter == parameter)
      return version.buffer;
  return {};
}

size_t VersionArrays::bytes() const {
  size_t sum = 0;
  for (const Version &version : arrays)
    sum += version.buffer.bytes;
  return sum;
}
