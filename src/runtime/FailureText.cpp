#include "runtime/FailureText.h"

#include "runtime/Message.h"
#include "runtime/Text.h"

#include <bit>

namespace costate::runtime {

static Failure failure(ErrorCode code, const KernelCode &kernel, int64_t site,
                       const std::string &text) {
  return {code, "kernel `" + kernel.name + "`" + siteText(kernel, site) + ": " +
                    text};
}

std::string WorkItemPlace::text() const {
  return "work item " + indexText(number, extents);
}

/// `, in work item 5`, or nothing.
static std::string suffix(const WorkItemPlace &workItem) {
  return workItem.number < 0 ? "" : ", in " + workItem.text();
}

/// In the words of the user, for whom components are no dimension.
static std::string dimensionText(const KernelCode &code, size_t argument,
                                 int64_t dim) {
  int components =
      argument < code.componentDims.size() ? code.componentDims[argument] : -1;
  if (dim == components)
    return "the components of an element";
  return "dimension " + std::to_string(components == 0 ? dim - 1 : dim);
}

Failure indexFailure(const LaunchRequest &request, int64_t site,
                     int64_t parameter, int64_t dim, int64_t index,
                     int64_t extent, WorkItemPlace workItem) {
  const KernelCode &code = *request.code;
  if (parameter < 0)
    return failure(ErrorCode::OutOfRange, code, site,
                   "index " + std::to_string(index) +
                       " is outside of a private array of " +
                       std::to_string(extent) + " elements" + suffix(workItem));
  size_t argument = code.parameters[static_cast<size_t>(parameter)].argument;
  return failure(ErrorCode::OutOfRange, code, site,
                 "index " + std::to_string(index) + " is outside " +
                     dimensionText(code, argument, dim) + " of " +
                     argumentText(code, argument) + ", whose extent is " +
                     std::to_string(extent) + suffix(workItem));
}

Failure stepFailure(const KernelCode &code, int64_t site) {
  return failure(ErrorCode::KernelFailed, code, site,
                 "the step of this loop is 0, so it would not end; give it "
                 "another step");
}

Failure countFailure(const KernelCode &code, int64_t site) {
  return failure(ErrorCode::KernelFailed, code, site,
                 "this range has more work items than can be counted; give it "
                 "smaller extents");
}

/// The text with its numbers, element and work item.
static std::string filled(const KernelCode &code, int64_t text,
                          std::span<const double> numbers,
                          const WorkItemPlace &workItem,
                          const std::string &element = "") {
  std::string result;
  for (char c : code.texts[static_cast<size_t>(text)]) {
    if (c == '%') {
      result += numberText(numbers.front());
      numbers = numbers.subspan(1);
    } else if (c == '@') {
      result += element;
    } else if (c == '#') {
      result += suffix(workItem);
    } else {
      result += c;
    }
  }
  return result;
}

Failure finiteFailure(const LaunchRequest &request, int64_t site, int64_t text,
                      std::span<const double> numbers, WorkItemPlace workItem) {
  return failure(ErrorCode::NotFinite, *request.code, site,
                 filled(*request.code, text, numbers, workItem));
}

Failure elementFailure(const LaunchRequest &request, int64_t site, int64_t text,
                       int64_t parameter, int64_t element,
                       std::span<const double> numbers,
                       WorkItemPlace workItem) {
  return failure(ErrorCode::NotFinite, *request.code, site,
                 filled(*request.code, text, numbers, workItem,
                        elementText(request, static_cast<size_t>(parameter),
                                    element, Naming::OfParameter)));
}

Failure assertFailure(const KernelCode &code, int64_t site, int64_t text,
                      std::span<const int64_t> words, WorkItemPlace workItem) {
  return failure(ErrorCode::AssertionFailed, code, site,
                 messageText(code, text, words) + suffix(workItem));
}

/// A text with places for numbers has these, another one the sites of other
/// places.
static std::string refusalText(const LaunchRequest &request, int64_t text,
                               std::span<const int64_t> words,
                               const WorkItemPlace &workItem) {
  const KernelCode &code = *request.code;
  if (code.texts[static_cast<size_t>(text)].find('{') != std::string::npos)
    return messageText(code, text, words, [&](int64_t number, int64_t element) {
      return elementText(request, static_cast<size_t>(number), element,
                         Naming::OfPrimal);
    });
  std::string places;
  for (int64_t other : words)
    places += (places.empty() ? "" : " or") + siteText(code, other);
  return filled(code, text, {}, workItem, places);
}

Failure refusal(const LaunchRequest &request, int64_t site, int64_t text,
                std::span<const int64_t> words, WorkItemPlace workItem) {
  return failure(ErrorCode::CannotReplay, *request.code, site,
                 refusalText(request, text, words, workItem) +
                     suffix(workItem));
}

Failure deviceFailure(const LaunchRequest &request, const DeviceErrorCell &cell,
                      std::span<const int64_t> extents) {
  WorkItemPlace workItem{cell.workItem, extents};
  const int64_t *w = cell.words;
  double numbers[4];
  auto floats = [&](int first, size_t count) {
    for (size_t k = 0; k < count; ++k)
      numbers[k] = std::bit_cast<double>(w[first + static_cast<int>(k)]);
    return std::span<const double>(numbers, count);
  };
  switch (cell.kind) {
  case DeviceErrorCell::IndexError:
    return indexFailure(request, cell.site, w[0], w[1], w[2], w[3], workItem);
  case DeviceErrorCell::NotFinite:
    return finiteFailure(request, cell.site, w[0],
                         floats(2, static_cast<size_t>(w[1])), workItem);
  case DeviceErrorCell::ElementNotFinite:
    return elementFailure(request, cell.site, w[0], w[1], w[2], floats(3, 1),
                          workItem);
  case DeviceErrorCell::SumNotFinite:
    return elementFailure(request, cell.site, w[0], w[1], w[2], floats(3, 2),
                          workItem);
  case DeviceErrorCell::AssertFailed:
    return assertFailure(*request.code, cell.site, w[0],
                         {w + 2, static_cast<size_t>(w[1])}, workItem);
  case DeviceErrorCell::Refused:
    return refusal(request, cell.site, w[0], {w + 2, static_cast<size_t>(w[1])},
                   workItem);
  default:
    return stepFailure(*request.code, cell.site);
  }
}

} // namespace costate::runtime
