#include "runtime/cuda/Spills.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace costate::runtime::cuda {

/// The number after the first `mark`; 0 if there is none.
static size_t numberAfter(std::string_view text, std::string_view mark) {
  size_t at = text.find(mark), number = 0;
  if (at != text.npos)
    std::from_chars(text.data() + at + mark.size(), text.data() + text.size(),
                    number);
  return number;
}

/// `.local .align 8 .b8 __local_depot0[280];`
static size_t ownBytes(std::string_view body) {
  size_t at = body.find("__local_depot");
  return at == body.npos ? 0 : numberAfter(body.substr(at), "[");
}

std::vector<CrowdedKernel> crowdedKernels(const std::string &ptx) {
  constexpr std::string_view entry = ".entry ", limit = ".minnctapersm ";
  std::vector<CrowdedKernel> kernels;
  for (size_t at = ptx.find(entry); at != ptx.npos;) {
    size_t next = ptx.find(entry, at + 1);
    size_t end = std::min(next, ptx.find(".func ", at));
    std::string_view text = std::string_view(ptx).substr(at, end - at);
    std::string_view head = text.substr(0, text.find('{'));
    size_t blocks = numberAfter(head, limit);
    if (blocks > 2 && blocks < 10)
      kernels.push_back({std::string(head.substr(
                             entry.size(), head.find('(') - entry.size())),
                         at + head.find(limit) + limit.size(), ownBytes(text)});
    at = next;
  }
  return kernels;
}

std::string roomier(std::string ptx,
                    const std::vector<CrowdedKernel> &kernels) {
  for (const CrowdedKernel &kernel : kernels)
    ptx[kernel.place] = '2';
  return ptx;
}

} // namespace costate::runtime::cuda
