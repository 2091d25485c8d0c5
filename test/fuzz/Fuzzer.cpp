#include "fuzz/Fuzzer.h"

#include "fuzz/Shrink.h"

using namespace mlir;

namespace costate::fuzz {

/// Contexts keep every constant that they have seen.
constexpr unsigned kernelsPerSession = 4000;

std::string textOf(const Case &subject) {
  Case copy = copyOf(subject);
  attachValues(copy.kernel, copy.memory);
  std::string text;
  llvm::raw_string_ostream stream(text);
  copy.module->print(stream);
  return text;
}

static std::string withoutNumbers(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

std::optional<Finding> Fuzzer::check(uint64_t seed) {
  if (used++ % kernelsPerSession == 0)
    session = std::make_unique<Session>();
  Case subject = generate(session->context(), seed);
  Properties wanted = Properties::sampled(seed);
  wanted.add(always);
  Verdict verdict = fuzz::check(*session, subject, seed, wanted);
  ++counts.kernels;
  subject.kernel.walk([&](Operation *) { ++counts.operations; });
  ++counts.byKind[verdict.kind];
  counts.judged += verdict.judged;
  counts.reloading += verdict.reloads;
  counts.recording += verdict.versions;
  counts.repeating += verdict.scratch;
  counts.second += verdict.second;
  counts.pushing += verdict.pushes > 0;
  if (verdict.kind == Verdict::Refused)
    ++counts.refusals[withoutNumbers(verdict.text)];
  coverage.add(subject, verdict);
  if (verdict.kind == Verdict::Wrong)
    return shrunk(subject, seed, verdict);
  return std::nullopt;
}

Finding Fuzzer::shrunk(const Case &subject, uint64_t seed,
                       const Verdict &verdict) {
  Properties only = Properties::of({verdict.property});
  // Others become invalid while a kernel shrinks.
  if (verdict.property != Property::Still)
    only.add(Property::Forward);
  if (verdict.property == Property::SecondDifferences)
    only.add(Property::Second);
  auto fails = [&](const Case &candidate) {
    Verdict other = fuzz::check(*session, candidate, seed, only);
    return other.kind == Verdict::Wrong && other.property == verdict.property;
  };
  Case smallest = copyOf(subject);
  Finding finding{seed, verdict, ""};
  if (fails(smallest)) {
    smallest = shrink(*session, std::move(smallest), fails,
                      verdict.property == Property::Finite);
    finding.verdict = fuzz::check(*session, smallest, seed, only);
  }
  finding.text = textOf(smallest);
  return finding;
}

Verdict replay(Session &session, StringRef text) {
  Case subject;
  Verdict verdict;
  Session::Report report = session.reportOf([&] {
    subject.module = session.parse(text);
    if (!subject.module)
      return;
    subject.kernel = kernelOf(*subject.module);
    if (FailureOr<Memory> memory = attachedValues(subject.kernel);
        succeeded(memory))
      subject.memory = *memory;
  });
  if (!report.text.empty()) {
    verdict.kind = Verdict::Wrong;
    verdict.text = report.text;
    return verdict;
  }
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    verdict = check(session, subject, seed, Properties::all());
    if (verdict.kind == Verdict::Wrong)
      return verdict;
  }
  return verdict;
}

} // namespace costate::fuzz
