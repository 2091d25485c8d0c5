#pragma once
/// Many random kernels, what became of them, and the first that is wrong.

#include "fuzz/Check.h"
#include "fuzz/Coverage.h"

#include <map>

namespace costate::fuzz {

struct Counts {
  uint64_t kernels = 0, operations = 0;
  uint64_t byKind[Verdict::Wrong + 1] = {};
  std::map<std::string, uint64_t> refusals; ///< by the text, without numbers
  uint64_t judged = 0;
  // Gradients that push, reload, need versions, repeat writes; their
  // derivatives.
  uint64_t pushing = 0, reloading = 0, recording = 0, repeating = 0, second = 0;
};

/// A kernel of which a property does not hold.
struct Finding {
  uint64_t seed = 0;
  Verdict verdict;
  std::string text; ///< of the smallest kernel that fails in the same way
};

class Fuzzer {
public:
  /// `always`: of each kernel, and others of some.
  explicit Fuzzer(Properties always = Properties::of({})) : always(always) {}

  /// Checks the kernel of `seed`; a finding if it is wrong.
  std::optional<Finding> check(uint64_t seed);

  Counts counts;
  Coverage coverage;

private:
  Finding shrunk(const Case &subject, uint64_t seed, const Verdict &verdict);

  Properties always;
  std::unique_ptr<Session> session;
  unsigned used = 0; ///< kernels that have lived in the session
};

/// Checks all properties of the kernel in a text with values, for a few seeds;
/// returns what is wrong, or that it is Right or Refused.
Verdict replay(Session &session, llvm::StringRef text);

/// The text of a kernel with its values.
std::string textOf(const Case &subject);

} // namespace costate::fuzz
