#include "ir/Text.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBufferRef.h"

using llvm::StringRef;

namespace costate::ir {

//===-- Tokens ------------------------------------------------------------===//

namespace {

/// A name (`%x`, without the number of a result), word, string or one
/// character.
struct Token {
  StringRef text;
  unsigned line = 0;
  bool isName() const { return text.size() > 1 && text.front() == '%'; }
  bool isString() const { return text.starts_with('"'); }
  bool isWord() const { return llvm::isAlpha(front()) || front() == '_'; }
  char front() const { return text.empty() ? 0 : text.front(); }
  bool is(StringRef other) const { return text == other; }
};

/// What MLIR's lexer sees, as far as names and brackets need it.
class Lexer {
public:
  explicit Lexer(StringRef text) : rest(text) {}

  std::vector<Token> all() {
    std::vector<Token> tokens;
    for (skip(); !rest.empty(); skip())
      if (Token token = take(lengthOfToken()); token.front() != '#' || !follows)
        tokens.push_back(token);
    return tokens;
  }

private:
  static bool continuesWord(char c) {
    return llvm::isAlnum(c) || StringRef("_$.").contains(c);
  }

  void skip() {
    follows = true;
    while (!rest.empty()) {
      size_t length = llvm::isSpace(rest.front()) || rest.front() == 0 ? 1
                      : rest.starts_with("//")
                          ? std::min(rest.find('\n'), rest.size())
                          : 0;
      if (!length)
        return;
      follows = false;
      take(length);
    }
  }

  size_t lengthOfString() const {
    size_t end = 1;
    while (end < rest.size() && rest[end] != '"' && rest[end] != '\n')
      end += rest[end] == '\\' ? 2 : 1;
    return std::min(end + 1, rest.size());
  }

  size_t lengthOfToken() const {
    char first = rest.front();
    if (first == '"')
      return lengthOfString();
    if (rest.starts_with("->"))
      return 2;
    if (StringRef("%^@!#").contains(first))
      return 1 + std::min(rest.drop_front().find_if_not(continuesInName),
                          rest.size() - 1);
    return continuesWord(first)
               ? std::min(rest.find_if_not(continuesWord), rest.size())
               : 1;
  }

  static bool continuesInName(char c) { return continuesWord(c) || c == '-'; }

  Token take(size_t length) {
    Token token{rest.take_front(length), line};
    line += token.text.count('\n');
    rest = rest.drop_front(length);
    return token;
  }

  StringRef rest;
  unsigned line = 1;
  bool follows = true; ///< no space in front of the token
};

//===-- Names -------------------------------------------------------------===//

struct Scope {
  llvm::StringSet<> defined;
  llvm::StringMap<unsigned> undefined; ///< used before: by line
};

/// Follows the scopes of names through a text. Knows of the syntax what all
/// operations have in common; where it breaks, the parser stops as well.
class Names {
public:
  explicit Names(StringRef text) : tokens(Lexer(text).all()) {
    scopes.emplace_back();
  }

  std::optional<TextFault> check() {
    for (at = 0; at < tokens.size() && !fault && !isBroken; ++at)
      step();
    return fault;
  }

private:
  enum class Bracket : char { Round = '(', Square = '[', Dict, Region };

  const Token &token(size_t place) const {
    static const Token none;
    return place < tokens.size() ? tokens[place] : none;
  }
  const Token &next(size_t ahead = 1) const { return token(at + ahead); }
  const Token &previous() const { return at ? tokens[at - 1] : token(~0ul); }
  bool isInRegion() const {
    return brackets.empty() || brackets.back() == Bracket::Region;
  }

  void step() {
    const Token &now = tokens[at];
    if (now.isName())
      return name(now);
    if (isInRegion() && startsOperation(now))
      beginOperation();
    switch (now.front()) {
    case '(':
    case '[':
      return open(now);
    case '{':
      return isRegion() ? openRegion() : brackets.push_back(Bracket::Dict);
    case ')':
    case ']':
    case '}':
      return close(now.front());
    }
  }

  /// In front of its name, and of its results' where it has any.
  bool startsOperation(const Token &now) const {
    if (previous().is("="))
      return false;
    // Inside of functions the dialect `func` goes without saying.
    if (now.is("return") || now.is("call"))
      return true;
    return now.isString() ? next().is("(")
                          : now.isWord() && now.text.contains('.');
  }

  void beginOperation() {
    for (StringRef result : results)
      scopes.back().defined.insert(result);
    results.clear();
    arguments.clear();
  }

  //===-- Brackets --------------------------------------------------------===//

  void open(const Token &now) {
    bool isRound = now.is("(");
    brackets.push_back(isRound ? Bracket::Round : Bracket::Square);
    if (isRound)
      lists.push_back(kindOfList());
  }

  /// What the names in a list in round brackets are.
  enum class List : char { Uses, OfBlock, OfRegion, Typed };

  List kindOfList() const {
    if (previous().front() == '^')
      return List::OfBlock;
    if (previous().front() == '@')
      return List::Typed;
    size_t end = at + 1;
    while (token(end).isName() || token(end).is(","))
      ++end;
    bool isIntroduced = token(end).is(")") &&
                        (token(end + 1).is("in") || token(end + 1).is("="));
    return isIntroduced ? List::OfRegion : List::Uses;
  }

  /// Not the attributes of an operation.
  bool isRegion() const {
    if (!isInRegion() && !isGeneric())
      return false;
    if (previous().is("attributes") || previous().is("=") || previous().is("<"))
      return false;
    const Token &first = next();
    if (first.is("}") || (first.isWord() && next(2).is("}")))
      return !arguments.empty();
    bool isKey = first.isWord() || first.isString();
    return !isKey || !(next(2).is("=") || next(2).is(","));
  }

  /// `"name"(...) ({`, `}, {`
  bool isGeneric() const {
    return brackets.back() == Bracket::Round &&
           (previous().is("(") || previous().is(","));
  }

  void openRegion() {
    brackets.push_back(Bracket::Region);
    Scope scope;
    for (StringRef argument : arguments)
      scope.defined.insert(argument);
    scopes.push_back(std::move(scope));
    outer.push_back(std::move(results));
    results.clear();
    arguments.clear();
  }

  void close(char bracket) {
    char opening = bracket == ')' ? '(' : bracket == ']' ? '[' : '{';
    isBroken = brackets.empty() || opening != characterOf(brackets.back());
    if (isBroken)
      return;
    Bracket closed = brackets.pop_back_val();
    if (closed == Bracket::Round)
      lists.pop_back();
    if (closed == Bracket::Region)
      closeRegion();
  }

  static char characterOf(Bracket bracket) {
    return bracket == Bracket::Round || bracket == Bracket::Square
               ? char(bracket)
               : '{';
  }

  void closeRegion() {
    Scope closed = scopes.pop_back_val();
    results = outer.pop_back_val();
    arguments.clear();
    for (auto &use : closed.undefined)
      scopes.back().undefined.try_emplace(use.first(), use.second);
  }

  //===-- Names -----------------------------------------------------------===//

  void name(const Token &now) {
    if (isInRegion() && isResult())
      return result(now);
    if (next().is("=") || isArgument())
      return argument(now);
    use(now);
  }

  /// `%a, %b:2 = operation`
  bool isResult() const {
    size_t end = at;
    while (token(end).isName()) {
      ++end;
      if (token(end).is(":"))
        end += 2;
      if (!token(end).is(","))
        break;
      ++end;
    }
    return token(end).is("=") &&
           (token(end + 1).isWord() || token(end + 1).isString());
  }

  void result(const Token &now) {
    if (!previous().is(","))
      beginOperation();
    define(now, scopes.size() - 1);
    results.push_back(now.text);
  }

  bool isArgument() const {
    if (isInRegion() || brackets.back() != Bracket::Round)
      return false;
    List list = lists.back();
    return list == List::OfBlock || list == List::OfRegion ||
           (list == List::Typed && next().is(":"));
  }

  void argument(const Token &now) {
    bool ofBlock = !lists.empty() && lists.back() == List::OfBlock;
    if (ofBlock) {
      define(now, scopes.size() - 1);
      scopes.back().defined.insert(now.text);
      return;
    }
    define(now, scopes.size());
    arguments.push_back(now.text);
  }

  /// `now` becomes a name of the scope with number `depth`.
  void define(const Token &now, size_t depth) {
    for (const Scope &around : llvm::ArrayRef(scopes).take_front(depth)) {
      auto use = around.undefined.find(now.text);
      if (use != around.undefined.end())
        fault = {use->second, now.text.str() +
                                  " is used in front of the region that "
                                  "defines it, in line " +
                                  std::to_string(now.line)};
    }
  }

  void use(const Token &now) {
    bool isDefined = llvm::any_of(scopes, [&](const Scope &scope) {
      return scope.defined.contains(now.text);
    });
    if (!isDefined)
      scopes.back().undefined.try_emplace(now.text, now.line);
  }

  std::vector<Token> tokens;
  size_t at = 0;
  llvm::SmallVector<Scope> scopes; ///< never empty
  llvm::SmallVector<Bracket> brackets;
  llvm::SmallVector<List> lists; ///< of the round brackets that are open
  /// Of the operation that is being read, and of those around it.
  llvm::SmallVector<StringRef> results;
  llvm::SmallVector<llvm::SmallVector<StringRef>> outer;
  /// Of the next region.
  llvm::SmallVector<StringRef> arguments;
  bool isBroken = false;
  std::optional<TextFault> fault;
};

constexpr int deepest = 256;

/// Reading text and walking IR call themselves for what is nested. The line
/// where more than `deepest` brackets are open, or 0.
unsigned tooDeepIn(StringRef text) {
  int depth = 0;
  unsigned line = 1;
  for (size_t at = 0; at < text.size() && depth <= deepest; ++at) {
    char c = text[at];
    if (c == '\n')
      ++line;
    else if (c == '-' && text.substr(at).starts_with("->"))
      ++at;
    else if (StringRef("([{<").contains(c))
      ++depth;
    else if (StringRef(")]}>").contains(c))
      --depth;
  }
  return depth > deepest ? line : 0;
}

} // namespace

std::optional<TextFault> faultOf(StringRef text) {
  if (mlir::isBytecode(llvm::MemoryBufferRef(text, "")))
    return TextFault{1, "this is no text"};
  if (unsigned line = tooDeepIn(text))
    return TextFault{line, "more than " + std::to_string(deepest) +
                               " brackets are open; kernels do not nest so "
                               "deep"};
  return Names(text).check();
}

} // namespace costate::ir
