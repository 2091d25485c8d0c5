#include "run/Tensor.h"

#include "run/Npy.h"
#include "runtime/MemoryBudget.h"

#include <charconv>
#include <cstring>

namespace costate::run {
namespace {

constexpr DType allTypes[] = {DType::Bool, DType::I8,  DType::I16, DType::I32,
                              DType::I64,  DType::U8,  DType::U16, DType::U32,
                              DType::U64,  DType::F16, DType::F32, DType::F64};

std::optional<DType> typeNamed(std::string_view name) {
  for (DType type : allTypes)
    if (name == nameOf(type))
      return type;
  return std::nullopt;
}

Failure bad(const std::string &text, const std::string &why) {
  return Failure{ErrorCode::BadArgument, "`" + text + "`: " + why};
}

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> parts;
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    parts.push_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return parts;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

template <class T> std::optional<T> number(std::string_view text) {
  T value;
  if (!text.empty() && text.front() == '+')
    text.remove_prefix(1);
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

std::optional<bool> boolean(std::string_view text) {
  if (text == "1" || text == "true")
    return true;
  if (text == "0" || text == "false")
    return false;
  return std::nullopt;
}

std::optional<f16> half(std::string_view text) {
  std::optional<double> value = number<double>(text);
  return value ? std::optional(f16(*value)) : std::nullopt;
}

template <class T> bool put(std::byte *at, std::optional<T> value) {
  if (value)
    std::memcpy(at, &*value, sizeof(T));
  return value.has_value();
}

bool parseElement(DType type, std::string_view text, std::byte *at) {
  switch (type) {
  case DType::Bool:
    return put(at, boolean(text));
  case DType::I8:
    return put(at, number<int8_t>(text));
  case DType::I16:
    return put(at, number<int16_t>(text));
  case DType::U8:
    return put(at, number<uint8_t>(text));
  case DType::U16:
    return put(at, number<uint16_t>(text));
  case DType::F16:
    return put(at, half(text));
  case DType::I32:
    return put(at, number<int32_t>(text));
  case DType::I64:
    return put(at, number<int64_t>(text));
  case DType::U32:
    return put(at, number<uint32_t>(text));
  case DType::U64:
    return put(at, number<uint64_t>(text));
  case DType::F32:
    return put(at, number<float>(text));
  case DType::F64:
    return put(at, number<double>(text));
  }
  return false;
}

template <class T, class Shown = T> std::string text(const std::byte *at) {
  T element;
  std::memcpy(&element, at, sizeof(T));
  Shown value = element;
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, std::end(buffer), value);
  return std::string(buffer, end);
}

std::string elementText(DType type, const std::byte *at) {
  switch (type) {
  case DType::Bool:
    return *at == std::byte(0) ? "0" : "1";
  case DType::I8:
    return text<int8_t>(at);
  case DType::I16:
    return text<int16_t>(at);
  case DType::U8:
    return text<uint8_t>(at);
  case DType::U16:
    return text<uint16_t>(at);
  case DType::F16:
    return text<f16, float>(at);
  case DType::I32:
    return text<int32_t>(at);
  case DType::I64:
    return text<int64_t>(at);
  case DType::U32:
    return text<uint32_t>(at);
  case DType::U64:
    return text<uint64_t>(at);
  case DType::F32:
    return text<float>(at);
  case DType::F64:
    return text<double>(at);
  }
  return "";
}

/// Makes the elements of `tensor` from a list, or all from one value.
Result<> fill(Tensor &tensor, std::string_view values, bool repeat,
              const std::string &whole) {
  std::vector<std::string_view> parts = split(values);
  int64_t size = tensor.size();
  int64_t wanted = repeat ? 1 : size;
  if (static_cast<int64_t>(parts.size()) != wanted)
    return bad(whole, "has " + std::to_string(parts.size()) + " values where " +
                          std::to_string(wanted) + " are needed");
  Result<size_t> limit = runtime::defaultMemoryLimit();
  if (!limit)
    return limit.error();
  size_t bytes = sizeOf(tensor.type);
  if (size_t(size) > *limit / bytes)
    return Failure{ErrorCode::OutOfMemory,
                   "`" + whole + "`: does not fit into memory"};
  tensor.bytes.resize(size * bytes);
  for (int64_t k = 0; k < size; ++k) {
    std::string_view value = trim(parts[repeat ? 0 : k]);
    if (!parseElement(tensor.type, value, tensor.bytes.data() + k * bytes))
      return bad(whole, "`" + std::string(value) + "` is not a value of type " +
                            nameOf(tensor.type));
  }
  return {};
}

Result<std::vector<int64_t>> parseShape(std::string_view list,
                                        const std::string &whole) {
  std::vector<int64_t> shape;
  int64_t left = int64_t(1) << 40; // elements
  for (std::string_view part : split(list)) {
    std::optional<int64_t> extent = number<int64_t>(trim(part));
    if (!extent || *extent < 0)
      return bad(whole, "`" + std::string(part) + "` is not an extent");
    shape.push_back(*extent);
    if (*extent > 0 && (left /= *extent) == 0)
      return bad(whole, "is too large");
  }
  if (shape.size() > static_cast<size_t>(maxRank))
    return bad(whole,
               "has more than " + std::to_string(maxRank) + " dimensions");
  return shape;
}

} // namespace

int64_t Tensor::size() const {
  int64_t product = 1;
  for (int64_t extent : shape)
    product *= extent;
  return product;
}

Tensor zeros(DType type, std::vector<int64_t> shape) {
  Tensor tensor{type, false, std::move(shape), {}};
  tensor.bytes.resize(tensor.size() * sizeOf(type));
  return tensor;
}

Result<Tensor> parseTensor(const std::string &whole) {
  if (whole.ends_with(".npy"))
    return readNpy(whole);
  std::string_view rest = whole;
  size_t nameEnd = std::min(rest.find_first_of("[=:"), rest.size());
  std::optional<DType> type = typeNamed(rest.substr(0, nameEnd));
  if (!type)
    return bad(whole, "starts with no type; write f64=0.1, f64[2]=1,2, "
                      "f64[100]:0 or name a .npy file");
  rest.remove_prefix(nameEnd);
  bool isScalar = !rest.starts_with('[');
  std::vector<int64_t> shape;
  if (!isScalar) {
    size_t close = rest.find(']');
    if (close == rest.npos)
      return bad(whole, "the `[` is not closed");
    Result<std::vector<int64_t>> extents =
        parseShape(rest.substr(1, close - 1), whole);
    if (!extents)
      return extents.error();
    shape = *extents;
    rest.remove_prefix(close + 1);
  }
  if (!rest.starts_with('=') && !rest.starts_with(':'))
    return bad(whole, "needs `=` and its values, or `:` and one for all");
  Tensor tensor{*type, isScalar, std::move(shape), {}};
  if (Result<> filled = fill(tensor, rest.substr(1), rest[0] == ':', whole);
      !filled)
    return filled.error();
  return tensor;
}

std::string describe(const Tensor &tensor) {
  std::string result = nameOf(tensor.type);
  if (tensor.isScalar)
    return result;
  result += '[';
  for (size_t k = 0; k < tensor.shape.size(); ++k)
    result += (k ? "," : "") + std::to_string(tensor.shape[k]);
  return result + ']';
}

std::string print(const Tensor &tensor) {
  std::string result = describe(tensor) + "=";
  size_t bytes = sizeOf(tensor.type);
  for (int64_t k = 0; k < tensor.size(); ++k) {
    result += k ? "," : "";
    result += elementText(tensor.type, tensor.bytes.data() + k * bytes);
  }
  return result;
}

} // namespace costate::run
