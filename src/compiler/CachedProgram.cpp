/// A program in front of a store: what is there needs no kernel IR at all.

#include "base/Fork.h"
#include "cache/Store.h"
#include "compiler/SourceProgram.h"
#include "compiler/Target.h"
#include "compiler/TreeFields.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/SHA256.h"

#include <functional>
#include <mutex>

#include <gnu/libc-version.h>

COSTATE_FIELDS(costate::compiler::Host, triple, cpu, features, scalarFeatures,
               maths, hasFma, vectorBits, isQuick);
COSTATE_FIELDS(costate::compiler::Options, debug, deterministic, fastMath,
               findNan, contract, calls, lanes);
COSTATE_FIELDS(costate::compiler::Derivation, mode, order, directions, adjoint,
               tangent, target, lanes, byBudget, fromMemory);

namespace costate::compiler {
namespace {

using Source = Result<std::shared_ptr<SourceProgram>>;
using Made = Result<std::shared_ptr<Program>>;

/// Of Costate, LLVM and MLIR as they are loaded, and of the library whose
/// functions fold constants; empty: not known.
const std::string &compilerIdentity() {
  static const std::string identity = [] {
    const void *const code[] = {
        reinterpret_cast<const void *>(&compilerIdentity),
        reinterpret_cast<const void *>(&llvm::SHA256::hash),
        reinterpret_cast<const void *>(&mlir::verify)};
    std::string found = cache::identityOf(code);
    return found.empty() ? found : found + gnu_get_libc_version();
  }();
  return identity;
}

/// What decides a program: all that it is made of, but not the line that it
/// begins at.
template <class... T>
cache::Key programKey(Options options, Loc origin, const T &...source) {
  cache::Writer writer(origin);
  writer(compilerIdentity(), host(), options, sizeof...(source), source...);
  return cache::keyOf(writer.bytes());
}

class CachedProgram final : public Program {
public:
  CachedProgram(std::shared_ptr<cache::Store> store, cache::Key key, Loc origin,
                std::function<Source()> make)
      : store(std::move(store)), key(key), origin(origin),
        make(std::move(make)) {}

  /// What has been compiled before is good; all else is looked at now.
  Result<> prepare() {
    if (std::optional<std::string> known = store->find(key))
      if (cache::Reader(*known)(kernelName, declared).isComplete())
        return {};
    Source made = source();
    if (!made)
      return made.error();
    kernelName = (*made)->name();
    declared = (*made)->arguments();
    store->put(key, cache::Writer()(kernelName, declared).bytes());
    return {};
  }

  const std::string &name() const override { return kernelName; }
  const std::vector<syntax::Argument> &arguments() const override {
    return declared;
  }

  Result<runtime::KernelCode> compile(const Derivation &derivation) override {
    cache::Key wanted = keyOf(derivation);
    if (std::optional<runtime::KernelCode> code = load(wanted))
      return *code;
    Source from = source();
    if (!from)
      return from.error();
    Result<ObjectCode> object = (*from)->build(derivation);
    if (!object) {
      forgetIfShort(object.error());
      return object.error();
    }
    ++store->counts.compiled;
    store->put(wanted, bytesOf(*object, origin));
    return link(std::move(*object));
  }

  Result<Interpretable> interpret(const Derivation &derivation,
                                  bool compiledFunctions) override {
    Source from = source();
    return from ? (*from)->interpret(derivation, compiledFunctions)
                : from.error();
  }

  Result<std::string> print(const Derivation &derivation, bool llvm) override {
    Source from = source();
    return from ? (*from)->print(derivation, llvm) : from.error();
  }

private:
  /// Where memory has ended in the middle of something, that is left as it is.
  void forgetIfShort(const Failure &failure) {
    std::lock_guard lock(mutex);
    if (failure.code == ErrorCode::OutOfMemory)
      made = nullptr;
  }

  Source source() {
    std::lock_guard lock(mutex);
    if (made)
      return made;
    Source source = make();
    if (source)
      made = *source;
    return source;
  }

  cache::Key keyOf(const Derivation &derivation) const {
    return cache::keyOf(
        cache::Writer()(cache::textOf(key), derivation).bytes());
  }

  std::optional<runtime::KernelCode> load(const cache::Key &wanted) {
    std::optional<std::string> bytes = store->find(wanted);
    std::optional<ObjectCode> object;
    if (bytes)
      object = objectCodeOf(*bytes, origin);
    if (!object)
      return std::nullopt;
    Result<runtime::KernelCode> code = link(std::move(*object));
    if (!code)
      return std::nullopt;
    code->isLoaded = true;
    ++store->counts.loaded;
    return std::move(*code);
  }

  const std::shared_ptr<cache::Store> store;
  const cache::Key key;
  const Loc origin; ///< line 0: not known
  std::string kernelName;
  std::vector<syntax::Argument> declared;
  Mutex mutex; ///< of what follows
  std::function<Source()> make;
  std::shared_ptr<SourceProgram> made;
};

Made withoutStore(Source source) {
  if (!source)
    return source.error();
  return std::shared_ptr<Program>(*source);
}

Made withStore(std::shared_ptr<cache::Store> store, cache::Key key, Loc origin,
               std::function<Source()> make) {
  auto program = std::make_shared<CachedProgram>(std::move(store), key, origin,
                                                 std::move(make));
  if (Result<> done = program->prepare(); !done)
    return done.error();
  return std::shared_ptr<Program>(program);
}

} // namespace

Made Program::lower(syntax::Kernel kernel, Options options,
                    std::shared_ptr<cache::Store> store) {
  if (!store || compilerIdentity().empty())
    return withoutStore(SourceProgram::lower(kernel, options));
  const cache::Key key = programKey(options, kernel.loc, kernel);
  const Loc loc = kernel.loc;
  return withStore(std::move(store), key, loc,
                   [kernel = std::move(kernel), options] {
                     return SourceProgram::lower(kernel, options);
                   });
}

Made Program::parse(const std::string &text, const std::string &fileName,
                    const std::string &kernel, Options options,
                    std::shared_ptr<cache::Store> store) {
  if (!store || compilerIdentity().empty())
    return withoutStore(SourceProgram::parse(text, fileName, kernel, options));
  return withStore(
      std::move(store), programKey(options, Loc(), text, fileName, kernel),
      Loc(),
      [=] { return SourceProgram::parse(text, fileName, kernel, options); });
}

} // namespace costate::compiler
