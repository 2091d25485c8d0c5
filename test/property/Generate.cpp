#include "property/Generate.h"

#include "property/Expressions.h"

#include <optional>

namespace costate::property {
namespace {

class Generator : Expressions {
public:
  explicit Generator(unsigned seed) : Expressions(seed) {
    wild = chance(20);
    inPlace = chance(40);
    if (chance(8))
      racing = pick(std::vector<std::string>{"y", "z", "u", "v", "n", "g"});
    bool wished = wish.head == "local" || wish.head == "get" ||
                  wish.head == "put" || wish.head == "bump";
    localPercent = wished ? 45 : chance(35) ? between(8, 30) : 0;
    tensorPercent = wishesTensors() ? 50 : chance(35) ? between(10, 40) : 0;
    single = chance(20) || isSingle(wish.type) || isSingle(wish.from);
    most = between(3, wild ? 12 : chance(20) ? 30 : 14);
    if (seed >= firstShort)
      most = std::min(most, 5);
    rangePercent =
        chance(wish.head == "driven" ? 90 : 20) ? between(10, 40) : 0;
  }

  Node program() {
    Node result = list("program", {atom(width)});
    for (int part = between(1, wild ? 2 : 4); part > 0 && budget() > 0;
         --part) {
      if (chance(40) || rangePercent)
        serial(result);
      result.children.push_back(range());
    }
    if (chance(40))
      serial(result);
    outside();
    finish(result);
    return result;
  }

private:
  bool wishesTensors() const {
    for (const auto *operations : {&vectorOperations(), &matrixOperations(),
                                   &tensorReductions(), &tensorStatements()})
      for (const TensorOperation &operation : *operations)
        if (wish.head == operation.head)
          return true;
    return false;
  }

  int budget() const { return most - made; }

  void outside() {
    inRange = false;
    own.clear();
    for (const ArrayInfo &array : arrays())
      roles[array.name] = Role::Gather;
  }

  void serial(Node &program) {
    outside();
    for (int count = between(1, wild ? 2 : 4); count > 0; --count) {
      if (wishesReduction() || chance(8))
        program.children.push_back(reduction());
      program.children.push_back(statement(2));
    }
    bool mayReturn = chance(15);
    if (mayReturn || chance(15))
      program.children.push_back(length());
    if (mayReturn)
      program.children.push_back(jump());
  }

  /// An extent of ranges that follow.
  Node length() {
    std::string name = fresh("len");
    Node value = chance(50) ? wrapped(width + 1) : extent(width);
    names.push_back({name, "i64", false, width + 1});
    extents.push_back(name);
    return list("let", {atom(name), value});
  }

  /// A range in serial control flow; perhaps it writes u(t+1, _) from u(t, _).
  Node drivenRange() {
    int around = std::exchange(loops, 0);
    outerLoops += around;
    std::map<std::string, Role> outer = roles;
    Node result =
        chance(50) && outer.at("u") != Role::Locked ? timeRanges() : range();
    inRange = false;
    own.clear();
    roles = outer;
    outerLoops -= around;
    loops = around;
    return result;
  }

  Node timeRanges() {
    std::string t = fresh("k");
    bool down = chance(30);
    Node result =
        list("for", {atom(t), atom(down ? steps - 1 : 0),
                     atom(down ? 0 : steps - 1), atom(down ? -1 : 1)});
    names.push_back({t, "i64", false, steps});
    ++outerLoops;
    result.children.push_back(
        range({atom(t), list(down ? "sub" : "add", {atom(t), atom(1)})}));
    --outerLoops;
    names.pop_back();
    written.insert("u");
    read.insert("u");
    return result;
  }

  /// `iteration`: empty, or a row of u and the one that follows.
  Node range(const std::vector<Node> &iteration = {}) {
    size_t outer = names.size();
    bool pair = iteration.empty() && chance(18), triple = pair && chance(30);
    outside();
    Node most = extent(pair ? 3 : width);
    if (!pair && !extents.empty() && chance(50))
      most = atom(pick(extents));
    inRange = true;
    for (const char *array :
         {"y", "z", "b", "n", "g", "h", "w", "c", "d", "e", "o", "r", "l"})
      roles[array] = pair         ? (chance(50) ? Role::Gather : Role::Scatter)
                     : chance(55) ? Role::Own
                     : chance(50) ? Role::Gather
                                  : Role::Scatter;
    roles["u"] = chance(75) ? Role::Own : Role::Gather;
    roles["v"] = chance(65) ? Role::Own : Role::Scatter;
    if (triple) { // whose elements are nobody's own
      roles["u"] = Role::Gather;
      roles["v"] = Role::Scatter;
    }
    roles["out"] = chance(60) ? Role::Scatter : Role::Gather;
    roles["s"] = chance(30) ? Role::Scatter : Role::Gather;
    if (roles["c"] == Role::Scatter)
      roles["c"] = Role::Gather; // bools do not add
    if (!iteration.empty())
      roles["u"] = Role::Locked;
    if (roles["l"] == Role::Scatter)
      roles["l"] = Role::Gather; // the order of additions to f16 shows
    bool shuffled = !pair && chance(20) && shuffle();
    for (auto &[array, role] : roles)
      flip[array] = chance(15);
    std::string i = fresh("i"), j = fresh("j");
    Node head = list(i, {most});
    own = {atom(i)};
    names.push_back({i, "i64", false, pair ? 3 : width});
    if (pair) {
      own.push_back(atom(j));
      head.children.push_back(atom(j));
      head.children.push_back(atom(between(1, width)));
      names.push_back({j, "i64", false, width});
    }
    if (triple) {
      std::string k = fresh("k");
      own.push_back(atom(k));
      head.children.push_back(atom(k));
      head.children.push_back(atom(between(1, 4)));
      names.push_back({k, "i64", false, 4});
    }
    std::vector<Name> serialNames(names.begin(), names.begin() + outer);
    for (Name &name : names)
      name.writable = false;
    Node result = list("range", {head});
    if (!iteration.empty())
      times.push_back(list("load", {atom("u"), iteration[0], own[0]}));
    for (int count = between(1, 3); count > 0; --count)
      result.children.push_back(declare());
    if (shuffled)
      if (std::optional<Node> node = fetch())
        result.children.push_back(*node);
    for (int count = wild ? 2 : between(2, 7); count > 0; --count)
      result.children.push_back(statement(divergent ? 4 : 3));
    if (!iteration.empty()) {
      Node value = list("sin", {list("add", {times.front(), real(3)})});
      times.clear();
      result.children.push_back(
          list("store", {atom("u"), iteration[1], own[0], value}));
    }
    finish(result);
    names = std::move(serialNames);
    return result;
  }

  bool shuffle() {
    std::string array =
        pick(std::vector<std::string>{"n", "g", "h", "w", "d", "e", "o", "r"});
    roles[array] = Role::Own;
    if (array == racing || !mayWrite(array))
      return false;
    roles[array] = Role::Shuffled;
    return true;
  }

  /// What the variables have become must reach memory to matter.
  void finish(Node &block) {
    Node sum = literal("f64");
    for (const std::string &type : types())
      for (const Name *name : named(type, true))
        sum = list("add", {sum, list("mul", {literal("f64"),
                                             asReal(type, atom(name->text))})});
    for (const char *type : {"vec", "mat"})
      for (const Name *name : named(type, true)) {
        const char *head = type[0] == 'v' ? "vsum" : "trace";
        sum = list("add", {sum, list("mul", {literal("f64"),
                                             list(head, {atom(name->text)})})});
      }
    for (const char *array : {"s", "out", "z", "y", "v"})
      if (mayWrite(array) &&
          (!inRange || roles.at(array) != Role::Own || chance(70))) {
        std::vector<Node> parts = {atom(array)};
        for (Node &part : element(array))
          parts.push_back(part);
        if (!mayWrite(array))
          continue;
        parts.push_back(sum);
        block.children.push_back(list("update", parts));
        return;
      }
  }

  Node extent(int most) {
    if (chance(15))
      return list("idx", {atom(most + 1), integer(2, "i64")});
    return chance(60) ? atom(most) : atom(between(1, most));
  }

  void block(Node &into, int depth, int statements) {
    size_t outer = names.size();
    for (; statements > 0; --statements)
      into.children.push_back(statement(depth));
    names.resize(outer);
  }

  Node declareLocal() {
    std::string type = someType(), name = fresh("l");
    names.push_back({name, "local " + type, true, 0});
    return list("local", {atom(name), atom(type)});
  }

  /// (put a i e) or (bump a i e): a[i] = e or a[i] += e
  Node writeLocal() {
    std::string type = someType();
    if (locals(type).empty() || chance(loops > 0 ? 35 : 15))
      return declareLocal();
    std::vector<Node> parts = elementOfLocal(type);
    Node value = expression(type, 3);
    parts.push_back(isReal(type) ? bounded(value) : value);
    return list(type != "bool" && chance(40) ? "bump" : "put", parts);
  }

  Node statement(int depth) {
    ++made;
    if (chance(localPercent))
      return writeLocal();
    if (chance(tensorPercent))
      return tensorStatement(fresh("a"));
    if (wishes("print") || chance(1)) // which never comes
      return list(
          "if", {list("gt", {atom("f64"), list("sin", {real(2)}), atom("1.5")}),
                 list("then", {list("print", {real(1)})})});
    if (wishes("assert") || chance(1))
      return list("assert", {real(2)});
    if (!inRange && depth < 2 && times.empty() && chance(rangePercent))
      return drivenRange();
    if (depth > 0 && budget() > 0)
      if (std::optional<Node> control = controlStatement(depth))
        return *control;
    if (inRange && (wishesReduction() || chance(4)))
      return reduction();
    if (wishes("fetch") || chance(3))
      if (std::optional<Node> node = fetch())
        return *node;
    int choice = below(100);
    if (wishes("store") || wishes("update") || choice < 40)
      return write();
    return chance(depth < 2 || loops > 0 ? 10 : 30) ? declare() : assign();
  }

  std::optional<Node> controlStatement(int depth) {
    bool wantsJump = wishes("break") || wishes("continue") || wishes("return");
    if (diverges() && chance(30))
      return partedLoop();
    bool wantsLoop = wish.head == "carry" && loops == 0 && chance(50);
    int choice = below(divergent && inRange ? 50 : 100);
    if (wild && mayRecur() && chance(40))
      return recurrence();
    if (wantsLoop || wishes("for") || choice < 12)
      return forLoop(depth);
    if (wishes("while") || wishes("decay") || choice < 18)
      return whileLoop(depth);
    if (choice < 23 && loops == 0 && mayWrite("u") &&
        (!inRange || (own.size() == 1 && roles.at("u") == Role::Own)))
      return timeLoop(depth);
    if (wishes("called") || chance(6))
      return called(depth);
    if (wishes("if") || wishes("elif") || wishes("else") || choice < 37)
      return branch(depth);
    if (wantsJump || choice < (loops > 0 ? 47 : 39))
      return jump();
    return {};
  }

  bool wishesReduction() {
    return wishes("sum") || wishes("sums") || wishes("least") ||
           wishes("most") || wishes("argmin") || wishes("argmax");
  }

  /// A variable for (sum i n e), or for one of the like. In serial code it
  /// stands outside of loops and branches: there it has a gradient.
  Node reduction() {
    static const std::vector<std::string> heads = {"sum",  "sums",   "least",
                                                   "most", "argmin", "argmax"};
    std::string head = wishesReduction() ? wish.head : pick(heads);
    std::string type = head.starts_with("arg") ? "i64" : "f64";
    int most = between(1, std::min(width, 4));
    std::string i = fresh("i"), name = fresh("t");
    Node n = chance(70) ? atom(most) : wrapped(most + 1);
    names.push_back({i, "i64", false, most});
    // Ranges know no private arrays of serial code.
    int locals = std::exchange(localPercent, inRange ? localPercent : 0);
    std::vector<Node> parts = {atom(i), n, real(2)};
    if (head == "sums")
      parts.push_back(real(1));
    localPercent = locals;
    names.pop_back();
    names.push_back({name, type, true, 0});
    Node value = list(head, parts);
    // No terms leave inf.
    if (head == "least" || head == "most")
      value = list("clamp", {value, atom("-9.5"), atom("9.5")});
    return list("var", {atom(name), atom(type), value});
  }

  bool mayFetch(const ArrayInfo &info) {
    std::string type = nameOf(info.type);
    Role role = roles.at(info.name);
    if (role == Role::Shuffled)
      return true;
    bool isOwn = !inRange || (own.size() == 1 && role == Role::Own &&
                              info.shape.size() == 1);
    return isOwn && !info.constant && racing != info.name &&
           (!isSingle(type) || single) && mayWrite(info.name);
  }

  /// A variable for what an atomic returns, of an element that nobody else
  /// uses.
  std::optional<Node> fetch() {
    std::vector<std::string> places;
    for (const ArrayInfo &info : arrays())
      if (mayFetch(info))
        places.insert(places.end(),
                      roles.at(info.name) == Role::Shuffled ? 40
                      : wish.head == "fetch" && wish.type == nameOf(info.type)
                          ? 10
                          : 1,
                      info.name);
    if (places.empty())
      return {};
    std::string array = pick(places), type = nameOf(arrayNamed(array).type);
    std::vector<std::string> kinds = {"exchange", "compare"};
    if (type != "bool")
      kinds.insert(kinds.end(), {"add", "sub"});
    if (!isReal(type))
      kinds.insert(kinds.end(), {"and", "or", "xor"});
    if (!isReal(type) && type != "bool")
      kinds.insert(kinds.end(), {"min", "max"});
    std::vector<Node> parts = {atom(pick(kinds)), atom(array)};
    for (Node &part : element(array))
      parts.push_back(part);
    if (parts[0].text == "compare")
      parts.push_back(chance(50) ? literal(type) : expression(type, 0));
    Node value = expression(type, 2);
    parts.push_back(isReal(type) ? bounded(value) : value);
    if (!mayFetch(arrayNamed(array)))
      return {};
    written.insert(array);
    std::string name = fresh("t");
    names.push_back({name, type, true, 0});
    return list("var", {atom(name), atom(type), list("fetch", parts)});
  }

  Node declare() {
    std::string type = someType();
    Node start = expression(type, 2);
    std::string name = fresh("t");
    names.push_back({name, type, true, 0});
    return list("var", {atom(name), atom(type), start});
  }

  /// Loops must not blow values up.
  Node bounded(Node value) {
    static const std::vector<std::string> heads = {"sin", "tanh", "cos"};
    if (loops + outerLoops == 0 || chance(25))
      return value;
    if (chance(30))
      return list("mul", {atom("0.55"), value});
    return list(pick(heads), {value});
  }

  Node assign() { return assign(someType()); }
  Node assign(const std::string &type) {
    auto variables = named(type, true);
    if (variables.empty())
      return declare();
    Node name = atom(pick(variables)->text);
    Node value = expression(type, 3);
    if (!isReal(type)) {
      bool plain = type == "bool" || chance(40);
      return list(plain ? "set" : chance(70) ? "add" : "scale", {name, value});
    }
    if (chance(30))
      return list("add", {name, bounded(value)});
    if (chance(20))
      return list("scale", {name, list("cos", {value})});
    return list("set", {name, bounded(value)});
  }

  bool mayWrite(const std::string &array) {
    Role role = roles.at(array);
    if (role == Role::Locked || role == Role::Shuffled ||
        (role == Role::Gather && inRange))
      return false;
    return !read.contains(array) || inPlace || (wild && chance(70));
  }

  /// Arrays that may be written here, those of the wish more often.
  std::string arrayToWrite() {
    std::vector<std::string> choices;
    for (const ArrayInfo &info : arrays()) {
      std::string type = nameOf(info.type);
      if (info.constant || (isSingle(type) && !single) || !mayWrite(info.name))
        continue;
      bool wanted =
          type == wish.type && (wish.head == "store" || wish.head == "update");
      choices.insert(choices.end(),
                     wanted          ? 20
                     : type == "f64" ? 3
                                     : 1,
                     info.name);
    }
    return choices.empty() ? "" : pick(choices);
  }

  Node write() {
    std::string array = arrayToWrite();
    if (array.empty())
      return assign();
    std::string type = nameOf(arrayNamed(array).type);
    Node value = expression(type, 3);
    std::vector<Node> parts = {atom(array)};
    for (Node &part : element(array))
      parts.push_back(part);
    if (!mayWrite(array))
      return declare();
    written.insert(array);
    bool shared = inRange && roles.at(array) == Role::Scatter;
    bool update = shared || (type != "bool" && chance(40));
    if (!update && isReal(type) && chance(25)) {
      Node old = list("load", parts);
      value = list("add", {list("mul", {atom("0.37"), old}), value});
    }
    if (isReal(type) && inPlace)
      value = bounded(value);
    parts.push_back(value);
    return list(update ? "update" : "store", parts);
  }

  Node forLoop(int depth) {
    Node lo, hi, step = atom(1);
    int bound = 0;
    if (chance(50)) {
      bound = between(1, 4);
      lo = atom(0);
      hi = diverges() ? remainder(bound + 1) : atom(bound);
    } else {
      lo = chance(50) ? atom(between(-1, 3)) : wrapped(4);
      hi = chance(30) ? atom(between(-2, 5)) : wrapped(6);
      if (chance(50))
        step = pick(std::vector<Node>{
            atom(-1), atom(2), atom(-2), atom(3),
            list("sub", {atom(0), list("add", {atom(1), wrapped(2)})}),
            list("add", {atom(1), wrapped(3)}),
            list("select", {condition(1), atom(1), atom(-1)})});
    }
    std::string k = fresh("k");
    Node result = list("for", {atom(k), lo, hi, step});
    enter();
    names.push_back({k, "i64", false, bound});
    block(result, depth - 1, between(1, 4));
    names.pop_back();
    leave();
    return result;
  }

  Node wrapped(int most) {
    return list("idx", {atom(most), integer(2, "i64")});
  }

  Node whileLoop(int depth) {
    if (chance(25))
      return scan(depth);
    if (chance(25)) {
      Node result = list("decay", {real(1), atom("0.2")});
      enter();
      block(result, depth - 1, between(1, 3));
      leave();
      return result;
    }
    Node most = chance(60) ? atom(between(0, 5))
                           : list("cast", {atom("i64"), wrapped(6)});
    Node result = list("while", {most, condition(2)});
    enter();
    block(result, depth - 1, between(1, 4));
    leave();
    return result;
  }

  /// Walks to the end of the arrays, after which its condition must not look.
  Node scan(int depth) {
    std::string k = fresh("k");
    names.push_back({k, "i64", false, width});
    Node here = list("load", {atom("x"), atom(k)});
    Node result =
        list("while", {atom(5), list("lt", {atom("f64"), here, real(1)})});
    enter();
    block(result, depth - 1, between(1, 3));
    leave();
    names.pop_back();
    Node ends = list("ge", {atom("i64"), atom(k), atom(width)});
    result.children.push_back(list("add", {atom(k), atom(1)}));
    result.children.push_back(
        list("if", {ends, list("then", {list("break")})}));
    Node start = atom(width - between(1, std::min(width, 4)));
    return list("if", {atom("true"),
                       list("then", {list("var", {atom(k), atom("i64"), start}),
                                     result})});
  }

  /// Writes u(t+1, _) from u(t, _).
  Node timeLoop(int depth) {
    std::string t = fresh("k");
    bool down = chance(30);
    Node result =
        list("for", {atom(t), atom(down ? steps - 1 : 0),
                     atom(down ? 0 : steps - 1), atom(down ? -1 : 1)});
    enter();
    names.push_back({t, "i64", false, steps});
    Node column = inRange ? element("u")[1] : atom(below(width));
    Node next = list(down ? "sub" : "add", {atom(t), atom(1)});
    Role role = std::exchange(roles["u"], Role::Locked);
    times.push_back(list("load", {atom("u"), atom(t), column}));
    if (chance(50))
      block(result, depth - 1, between(1, 3));
    Node value = list("sin", {list("add", {times.front(), real(3)})});
    written.insert("u");
    result.children.push_back(list("store", {atom("u"), next, column, value}));
    times.clear();
    roles["u"] = role;
    read.insert("u");
    names.pop_back();
    leave();
    return result;
  }

  bool mayRecur() {
    return inRange ? own.size() == 1 && roles.at("u") == Role::Own
                   : roles.at("u") != Role::Locked;
  }

  /// Reads u(k + a, _) and writes u(k + b, _), which is legal or not.
  Node recurrence() {
    std::string k = fresh("k"), name = fresh("t");
    bool down = chance(30);
    Node result = list("for", {atom(k), atom(down ? 3 : 1), atom(down ? 0 : 4),
                               atom(down ? -1 : 1)});
    Node column = inRange ? element("u")[1] : atom(below(width));
    auto at = [&] {
      return std::vector<Node>{
          atom("u"), list("add", {atom(k), atom(between(-1, 1))}), column};
    };
    std::vector<Node> from = at(), to = at();
    to.push_back(list("sin", {chance(50) ? atom(name) : real(2)}));
    Node use = list("var", {atom(name), atom("f64"), list("load", from)});
    Node store = list("store", to);
    Node effect = list("update", {atom("u"), atom(0), column, atom("0.3")});
    if (!inRange || roles.at("out") == Role::Scatter)
      effect = list("update",
                    {atom("out"), index(sums),
                     list("mul", {atom(name), list("cos", {atom(name)})})});
    if (chance(30))
      store = list("if", {list("gt", {atom("f64"), real(1), atom("0.1")}),
                          list("then", {store})});
    if (to.back().children[0].text != name && chance(30))
      result.children.insert(result.children.end(), {store, use, effect});
    else
      result.children.insert(result.children.end(), {use, store, effect});
    read.insert("u");
    return result;
  }

  /// Runs twice; jumps in it belong to what is around. Often only computes.
  Node called(int depth) {
    std::string sum = fresh("t");
    Node result = list("called", {atom(sum), atom(0)});
    if (chance(50))
      block(result, depth - 1, between(1, 4));
    else
      for (int count = between(1, 3); count > 0; --count)
        result.children.push_back(adjusted());
    result.children[1] = bounded(real(2));
    names.push_back({sum, "f64", true, 0});
    return result;
  }

  /// An assignment to a variable, if there is one.
  Node adjusted() { return adjusted(someType()); }
  Node adjusted(const std::string &type) {
    size_t outer = names.size();
    Node node = assign(type);
    names.resize(outer);
    return node;
  }

  Node branch(int depth) {
    Node then = list("then");
    Node result = list("if", {condition(2)});
    block(then, depth - 1, between(1, 3));
    result.children.push_back(then);
    while (chance(25)) {
      Node elif = list("elif", {condition(1)});
      block(elif, depth - 1, between(1, 2));
      result.children.push_back(elif);
    }
    if (chance(divergent ? 85 : 50)) {
      Node otherwise = list("else");
      block(otherwise, depth - 1, between(1, 3));
      result.children.push_back(otherwise);
    }
    return result;
  }

  /// Work items take sides that differ in what they save, and how often.
  Node partedLoop() {
    enter();
    Node sides = list("if", {conditionOfLanes(), side("then"), side("else")});
    leave();
    return list("for", {atom(fresh("k")), atom(0), atom(between(2, 3)), atom(1),
                        sides});
  }

  Node side(const std::string &head) {
    Node result = list(head);
    for (int count = between(1, 2); count > 0; --count) {
      Node node = adjusted(chance(70) ? "f64" : someType());
      if (chance(40))
        node = list("for", {atom(fresh("k")), atom(0), atom(between(1, 3)),
                            atom(1), node});
      result.children.push_back(node);
    }
    return result;
  }

  Node jump() {
    static const std::vector<std::string> inLoop = {
        "break", "continue", "break", "continue", "return"};
    Node test = condition(1), then = list("then");
    if (chance(50))
      then.children.push_back(chance(50) ? write() : assign());
    if (!then.children.empty() && then.children[0].is("var"))
      names.pop_back();
    then.children.push_back(list(loops > 0 ? pick(inLoop) : "return"));
    return list("if", {test, then});
  }

  void enter() {
    if (loops++ == 0)
      written.clear();
  }
  void leave() { --loops; }
  std::string fresh(const std::string &prefix) {
    return prefix + std::to_string(counter++);
  }

  int most, made = 0, counter = 0;
  int rangePercent = 0; ///< how often serial control flow drives ranges
  int outerLoops = 0;   ///< around the range
  std::vector<std::string> extents; ///< names of values that a range may have
};

} // namespace

Node generate(unsigned seed) { return Generator(seed).program(); }

} // namespace costate::property
