#include "api/VersionArrays.h"

#include "api/Checked.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::KernelCode;
using Role = runtime::Parameter::Role;

runtime::ArrayStorage *detail::arrayOf(const Call &call,
                                       const runtime::Parameter &parameter) {
  runtime::ArrayStorage *array = call.arguments[parameter.argument].array.get();
  if (parameter.role == Role::Adjoint)
    array = array->grad.get();
  for (uint32_t order = 0; order < parameter.order; ++order)
    array = checked(array->tangent()).get();
  return array;
}

VersionArrays::VersionArrays(const Call &call, const KernelCode &code,
                             const std::shared_ptr<runtime::CopyMemory> &room) {
  for (runtime::Parameter parameter : code.parameters)
    if (parameter.role == Role::Version)
      add(call, parameter, room);
}

VersionArrays VersionArrays::ofMemory(const Call &call,
                                      const KernelCode &code) {
  VersionArrays versions;
  versions.areCopies = false;
  for (runtime::Parameter parameter : code.parameters)
    if (parameter.role == Role::Version)
      versions.put(parameter, arrayOf(call, parameter)->buffer);
  return versions;
}

runtime::Buffer
VersionArrays::add(const Call &call, runtime::Parameter parameter,
                   const std::shared_ptr<runtime::CopyMemory> &room) {
  memory = room;
  put(parameter, checked(room->take(arrayOf(call, parameter)->buffer.bytes)));
  return arrays.back().buffer;
}

void VersionArrays::put(runtime::Parameter parameter, runtime::Buffer buffer) {
  arrays.push_back({parameter, buffer});
}

size_t VersionArrays::bytesOf(const Call &call, const KernelCode &code) {
  size_t sum = 0;
  for (runtime::Parameter parameter : code.parameters)
    if (parameter.role == Role::Version)
      sum += arrayOf(call, parameter)->buffer.bytes;
  return sum;
}

runtime::Buffer VersionArrays::find(const runtime::Parameter &parameter) const {
  for (const Version &version : arrays)
    if (version.parameter == parameter)
      return version.buffer;
  return {};
}

size_t VersionArrays::bytes() const {
  size_t sum = 0;
  for (const Version &version : arrays)
    if (version.parameter.role == Role::Version && areCopies)
      sum += version.buffer.bytes;
  return sum;
}
