/// Private arrays. The slot of one holds its number in Code::locals.

#include "interpreter/Elements.h"
#include "interpreter/Operations.h"

#include <algorithm>

using namespace mlir;

namespace costate::interpreter {
namespace {

std::span<uint64_t> elements(Machine &m, uint64_t number) {
  const LocalArray &local = m.code.locals[number];
  return std::span(m.localElements).subspan(local.first, local.size);
}

void clear(std::span<uint64_t> elements) { std::ranges::fill(elements, 0); }

/// The detail is its number.
bool declare(Machine &m, const Instruction &op) {
  m.put(op, uint64_t(op.detail));
  clear(elements(m, op.detail));
  return true;
}

bool clear(Machine &m, const Instruction &op) {
  clear(elements(m, m.operand(op, 0)));
  return true;
}

/// An element of operand `position`, whose index is the one after it; null if
/// there is none.
uint64_t *access(Machine &m, const Instruction &op, uint32_t position) {
  std::span<uint64_t> all = elements(m, m.operand(op, position));
  uint64_t index = m.operand(op, position + 1);
  if (index < all.size())
    return &all[index];
  m.fail(op, ErrorCode::OutOfRange,
         "index " + std::to_string(static_cast<int64_t>(index)) +
             " is outside of a private array of " + std::to_string(all.size()) +
             " elements");
  return nullptr;
}

bool load(Machine &m, const Instruction &op) {
  const uint64_t *element = access(m, op, 0);
  if (element)
    m.put(op, *element);
  return element;
}

template <class T> bool store(Machine &m, const Instruction &op) {
  uint64_t *element = access(m, op, 1);
  if (!element)
    return false;
  *element = m.operand(op, 0);
  if constexpr (!std::is_same_v<T, Bool>)
    *element = slotOf(elementOf<T>(*element));
  return true;
}

Handler selectStore(Operation *op, Instruction &, Code &) {
  Type local = cast<ir::LocalStoreOp>(op).getLocal().getType().getElementType();
  return byElement(local, []<class T>() -> Handler { return store<T>; });
}

Handler selectLocal(Operation *op, Instruction &instruction, Code &code) {
  auto size = static_cast<uint32_t>(cast<ir::LocalOp>(op).getType().getSize());
  instruction.detail = static_cast<uint32_t>(code.locals.size());
  code.locals.push_back({code.localElements, size});
  code.localElements += size;
  return declare;
}

} // namespace

llvm::ArrayRef<KnownOperation> localOperations() {
  static const KnownOperation known[] = {
      {"costate.local", selectLocal},
      {"costate.local_load", always<load>},
      {"costate.local_store", selectStore},
      {"costate.local_clear", always<clear>},
  };
  return known;
}

} // namespace costate::interpreter
