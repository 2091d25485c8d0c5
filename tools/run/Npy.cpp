#include "run/Npy.h"

#include <charconv>
#include <fstream>
#include <sstream>

namespace costate::run {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

struct Code {
  const char *name;
  DType type;
};
constexpr Code codes[] = {
    {"|b1", DType::Bool}, {"|i1", DType::I8},  {"<i2", DType::I16},
    {"<i4", DType::I32},  {"<i8", DType::I64}, {"|u1", DType::U8},
    {"<u2", DType::U16},  {"<u4", DType::U32}, {"<u8", DType::U64},
    {"<f2", DType::F16},  {"<f4", DType::F32}, {"<f8", DType::F64}};

/// Reads the dictionary of a header, such as
/// `{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }`.
class Header {
public:
  explicit Header(std::string_view text) : text(text) {}

  /// The value of `key`, up to its closing quote, bracket or comma.
  std::string_view value(std::string_view key) const {
    size_t at = text.find("'" + std::string(key) + "'");
    if (at == text.npos)
      return "";
    at = text.find(':', at);
    if (at == text.npos)
      return "";
    at = text.find_first_not_of(" ", at + 1);
    if (at == text.npos)
      return "";
    char first = text[at];
    char last = first == '(' ? ')' : first == '\'' ? '\'' : ',';
    size_t end = text.find(last, at + 1);
    if (end == text.npos)
      return "";
    return text.substr(at, last == ',' ? end - at : end + 1 - at);
  }

private:
  std::string_view text;
};

Failure bad(const std::string &name, const std::string &why) {
  return Failure{ErrorCode::BadFile, name + ": " + why};
}

Result<DType> dtypeOf(std::string_view descr, const std::string &name) {
  if (descr.size() < 3 || descr.front() != '\'')
    return bad(name, "its header names no simple dtype");
  std::string_view code = descr.substr(1, descr.size() - 2);
  for (const Code &known : codes)
    if (code == known.name)
      return known.type;
  if (code.front() == '>')
    return bad(name, "is big endian (" + std::string(code) +
                         "); convert it with astype('" + '<' +
                         std::string(code.substr(1)) + "')");
  return bad(name, "has dtype " + std::string(code) +
                       "; known are bool, int and uint of 8 to 64 bits, and "
                       "float16, float32 and float64");
}

Result<std::vector<int64_t>> shapeOf(std::string_view tuple,
                                     const std::string &name) {
  if (tuple.size() < 2 || tuple.front() != '(')
    return bad(name, "its header has no shape");
  std::vector<int64_t> shape;
  int64_t left = int64_t(1) << 48; // bytes that an address can count
  const char *at = tuple.data() + 1, *end = tuple.data() + tuple.size() - 1;
  while (at != end) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    int64_t extent;
    auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 0)
      return bad(name, "its header has the shape " + std::string(tuple));
    shape.push_back(extent);
    if (extent > 0 && (left /= extent) == 0)
      return bad(name, "its header has the shape " + std::string(tuple));
    at = next;
  }
  if (shape.size() > static_cast<size_t>(maxRank))
    return bad(name, "has " + std::to_string(shape.size()) +
                         " dimensions; arrays have at most 8");
  return shape;
}

Result<Tensor> decodeBody(std::string_view header, std::string_view body,
                          const std::string &name) {
  Header fields(header);
  Result<DType> type = dtypeOf(fields.value("descr"), name);
  if (!type)
    return type.error();
  std::string_view order = fields.value("fortran_order");
  if (order == "True")
    return bad(name, "is in Fortran order; save numpy.ascontiguousarray of it");
  if (order != "False")
    return bad(name, "its header names no order");
  Result<std::vector<int64_t>> shape = shapeOf(fields.value("shape"), name);
  if (!shape)
    return shape.error();
  Tensor tensor{*type, false, *shape, {}};
  size_t bytes = static_cast<size_t>(tensor.size()) * sizeOf(*type);
  if (body.size() != bytes)
    return bad(name, "holds " + std::to_string(body.size()) +
                         " bytes of data where its shape needs " +
                         std::to_string(bytes));
  auto from = reinterpret_cast<const std::byte *>(body.data());
  tensor.bytes.assign(from, from + bytes);
  return tensor;
}

} // namespace

Result<Tensor> decodeNpy(const std::string &bytes, const std::string &name) {
  std::string_view rest = bytes;
  if (!rest.starts_with(magic) || rest.size() < 10)
    return bad(name, "is not a .npy file");
  int version = static_cast<unsigned char>(rest[6]);
  if (version < 1 || version > 3)
    return bad(name, "has version " + std::to_string(version) +
                         " of the .npy format; known are 1 to 3");
  size_t lengthBytes = version == 1 ? 2 : 4, length = 0;
  if (rest.size() < 8 + lengthBytes)
    return bad(name, "ends in its header");
  for (size_t k = 0; k < lengthBytes; ++k)
    length |= size_t(static_cast<unsigned char>(rest[8 + k])) << (8 * k);
  rest.remove_prefix(8 + lengthBytes);
  if (rest.size() < length)
    return bad(name, "ends in its header");
  return decodeBody(rest.substr(0, length), rest.substr(length), name);
}

std::string encodeNpy(const Tensor &tensor) {
  std::string shape;
  for (int64_t extent : tensor.shape)
    shape += std::to_string(extent) + ",";
  const char *descr = "";
  for (const Code &code : codes)
    if (code.type == tensor.type)
      descr = code.name;
  std::string header = std::string("{'descr': '") + descr +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string bytes(magic);
  bytes += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
            static_cast<char>(header.size() >> 8)};
  bytes += header;
  bytes.append(reinterpret_cast<const char *>(tensor.bytes.data()),
               tensor.bytes.size());
  return bytes;
}

Result<Tensor> readNpy(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return bad(path, "cannot be opened");
  std::ostringstream contents;
  contents << file.rdbuf();
  return decodeNpy(contents.str(), path);
}

Result<> writeNpy(const std::string &path, const Tensor &tensor) {
  std::ofstream file(path, std::ios::binary);
  std::string bytes = encodeNpy(tensor);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file)
    return bad(path, "cannot be written");
  return {};
}

} // namespace costate::run
