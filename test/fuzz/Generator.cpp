#include "fuzz/Generator.h"

#include "fuzz/Statements.h"

using namespace mlir;

namespace costate::fuzz {
namespace {

class Generator : Statements {
public:
  Generator(MLIRContext &context, uint64_t seed) : Statements(context, seed) {}

  Case run() {
    isSingular = random.chance(2);
    favourite = anyFavourite();
    hasSingles =
        isConversion(favourite) ? random.chance(70) : random.chance(18);
    inPlace = random.chance(45);
    localPercent = random.chance(40) ? random.between(10, 45) : 0;
    rangePercent = random.chance(20) ? random.between(10, 40) : 0;
    rangeHere = [this](int) { drivenRange(); };
    size = random.between(3, 6);
    most = random.chance(50)   ? random.between(20, 50)
           : random.chance(80) ? random.between(50, 110)
                               : random.between(110, 260);
    Case result;
    chooseArrays();
    result.module = ModuleOp::create(here());
    b.setInsertionPointToEnd(result.module->getBody());
    result.kernel = makeKernel();
    result.memory = std::move(memory);
    result.isSingular = isSingular;
    b.setInsertionPoint(result.kernel.getBodyRegion().front().getTerminator());
    parts();
    return result;
  }

private:
  //===-- Arguments -------------------------------------------------------===//

  void add(Kind kind, std::vector<int64_t> extents, bool isConstant = false) {
    Array &array = arrays.emplace_back();
    array.kind = kind;
    array.extents = std::move(extents);
    array.isConstant = isConstant;
    if ((kind == Kind::I32 && random.chance(50)) ||
        (kind == Kind::F32 && random.chance(35)))
      array.element = narrowType(kind);
  }

  void chooseArrays() {
    int count = random.between(2, 4);
    for (int k = 0; k < count; ++k)
      add(Kind::F64, {size + (random.chance(20) ? random.between(1, 4) : 0)});
    if (random.chance(60))
      add(Kind::F64, {random.between(2, 4), size});
    if (random.chance(20))
      add(Kind::F64, {size * random.between(2, 3)});
    if (random.chance(60))
      add(Kind::F64, {});
    if (hasSingles)
      add(Kind::F32, {size});
    if (hasSingles && random.chance(50))
      add(Kind::F32, {});
    add(Kind::I64, {size}, random.chance(85));
    if (random.chance(50)) {
      add(random.chance(70) ? Kind::I64 : Kind::I32, {size}, true);
      arrays.back().isPermutation = random.chance(85);
    }
    if (random.chance(25))
      add(Kind::I32, {size}, random.chance(50));
    if (random.chance(25))
      add(Kind::Bool, {size}, random.chance(50));
  }

  ir::KernelOp makeKernel() {
    SmallVector<Type> types;
    for (Array &array : arrays) {
      types.push_back(ir::ArrayType::get(
          b.getContext(), array.element ? array.element : typeOf(array.kind),
          array.extents.size()));
      memory.arrays.push_back(fill(array, cast<ir::ArrayType>(types.back())));
      memory.scalars.emplace_back();
    }
    addScalar(types, Kind::I64, random.between(0, 4));
    if (random.chance(40))
      addScalar(types, Kind::F64, random.between(-12, 12) / 8.0);
    if (random.chance(15))
      addScalar(types, random.chance(50) ? Kind::Bool : Kind::I32, 1);
    auto kernel =
        ir::KernelOp::create(b, here(), "k", b.getFunctionType(types, {}));
    for (unsigned k = 0; k < types.size(); ++k) {
      if (k < arrays.size()) {
        arrays[k].argument = kernel.getArgument(k);
        if (arrays[k].extents.size() > 1 && (k + size) % 2)
          kernel.setArgAttr(k, ir::extentsAttr,
                            b.getDenseI64ArrayAttr(arrays[k].extents));
      } else
        offer(kernel.getArgument(k));
    }
    return kernel;
  }

  void addScalar(SmallVectorImpl<Type> &types, Kind kind, double value) {
    types.push_back(typeOf(kind));
    memory.arrays.emplace_back();
    memory.scalars.push_back({nullptr, int64_t(value), value});
  }

  interpreter::HostArray fill(const Array &array, ir::ArrayType type) {
    interpreter::HostArray values = makeArray(type, array.extents);
    Type element = type.getElementType();
    int count = int(sizeOf(values));
    for (int at = 0; at < count; ++at)
      set(values, element, size_t(at), elementOf(array, at));
    for (int at = count - 1; array.isPermutation && at > 0; --at) {
      size_t other = size_t(random.below(at + 1));
      double swapped = get(values, element, other);
      set(values, element, other, get(values, element, size_t(at)));
      set(values, element, size_t(at), swapped);
    }
    return values;
  }

  double elementOf(const Array &array, int at) {
    if (array.isPermutation)
      return at;
    if (!isFloat(array.kind))
      return random.below(array.kind == Kind::Bool ? 2 : 4);
    if (random.chance(10))
      return random.below(2);
    return float(random.real(-1.5, 1.5));
  }

  //===-- Parts -----------------------------------------------------------===//

  /// Unless kernels work in place, arrays that were written are only read later
  /// on, and inputs are never written.
  void chooseConstants() {
    for (Array &array : arrays)
      if (!inPlace && random.chance(60))
        array.isConstant = true;
  }

  void parts() {
    chooseConstants();
    if (llvm::all_of(arrays, [](Array &array) { return array.isConstant; }))
      arrays.front().isConstant = false;
    static constexpr int counts[] = {1, 1, 1, 2, 2, 3};
    if (random.chance(8))
      flags.returns = declareFlag();
    for (int count = random.pick(counts); count > 0 && !isFull(); --count) {
      serialRoles();
      if (random.chance(40) || rangePercent)
        serial();
      range();
      chooseConstants();
    }
    serialRoles();
    if (random.chance(30))
      serial();
  }

  /// In serial code every element belongs to the only work item.
  void serialRoles() {
    for (Array &array : arrays) {
      array.role = array.isConstant ? Role::Read
                   : inPlace        ? Role::Own
                                    : Role::Write;
      if (!array.isConstant && array.kind != Kind::Bool && random.chance(10))
        array.role = Role::Most;
      chooseExtremum(array);
      array.own = nullptr;
      array.column = {};
    }
  }

  void chooseExtremum(Array &array) {
    static constexpr const char *ofBits[] = {"and", "or", "xor"};
    array.takesMaxima = random.chance(50);
    array.bits.clear();
    if (!isFloat(array.kind) && random.chance(40))
      array.bits = random.pick(ofBits);
  }

  void serial() {
    auto some = [&] {
      if (random.chance(50))
        declareSome(1);
      if (random.chance(localPercent))
        declareLocal();
      statements(random.between(1, 3), 2);
    };
    if (raised.empty())
      return some();
    Value calm = noneRaised(raised);
    branch(calm, some, nullptr);
  }

  /// A range in serial control flow.
  void drivenRange() {
    std::vector<Array> outer(arrays.begin(), arrays.end());
    Array *array = risingArray();
    if (array && random.chance(60))
      timeRanges(*array);
    else
      range(/*sumPercent=*/50);
    for (auto [array, old] : llvm::zip(arrays, outer))
      array = old;
  }

  /// An array of rank 2 whose first index may be the time; null if none is.
  Array *risingArray() {
    SmallVector<Array *> found;
    for (Array &array : arrays)
      if (!array.isConstant && isFloat(array.kind) &&
          array.extents.size() == 2 && array.extents[0] > 1)
        found.push_back(&array);
    return found.empty() ? nullptr : random.pick(found);
  }

  /// for t: u[t+1, i] = f(u[t, any]), i in a range; or in the other direction
  void timeRanges(Array &array) {
    Bounds bounds = timeBounds(array);
    bool runsDown = random.chance(30);
    Flags outer = std::exchange(flags, Flags{});
    SmallVector<int> outerRaised = std::exchange(raised, {});
    counted(bounds, [&] {
      auto [t, next] = timesOfIteration(array, runsDown);
      time = Time{&array, t, next};
      range();
      time = {};
    });
    flags = outer;
    raised = outerRaised;
  }

  //===-- Ranges ----------------------------------------------------------===//

  struct Extent {
    Value value;
    int64_t bound; ///< it is at most this
  };

  Extent extent(int most) {
    int choice = random.below(100);
    if (choice < 60) {
      int count = random.chance(5) ? 0 : random.between(1, std::min(most, 4));
      return {integer(count), count};
    }
    if (choice < 80) {
      for (Array &array : arrays)
        if (array.extents.size() == 1 && array.extents[0] <= most)
          return {make<ir::ExtentOp>(array.argument, 0), array.extents[0]};
    }
    Value n = whole(Kind::I64, 1), count = integer(most);
    auto rest = ir::RemOp::create(b, here(), n, count);
    rest.setIsUnsigned(true);
    return {rest, most - 1};
  }

  void range(int sumPercent = 25) {
    SmallVector<Extent> extents = {extent(random.chance(30) ? size : 4)};
    if (!time.array && random.chance(15))
      extents.push_back(extent(3));
    SmallVector<Value> counts;
    for (Extent &extent : extents)
      counts.push_back(extent.value);
    if (!raised.empty())
      emptyIfReturned(counts);
    SmallVector<Kind> sums;
    for (int k = random.chance(sumPercent) ? random.between(1, 2) : 0; k > 0;
         --k)
      sums.push_back(hasSingles && random.chance(25) ? Kind::F32 : Kind::F64);
    bool ofIntegers = !sums.empty() && random.chance(30);
    bool isPair = ofIntegers && random.chance(50);
    if (ofIntegers)
      sums.assign(isPair ? 2 : sums.size(), Kind::I64);
    SmallVector<Type> types;
    for (Kind kind : sums)
      types.push_back(typeOf(kind));
    common = random.chance(20) ? number(Kind::F64, 1) : Value();
    auto op = ir::RangeOp::create(b, here(), counts, types);
    op.setMinima(isPair);
    fillRange(op, extents, sums);
    for (Value sum : op.getSums())
      offer(sum);
    if (sums.size() == 2 && sums[0] == sums[1] && isFloat(sums[0]))
      useSums(op);
  }

  /// In a way that tells one sum from the other, and their derivatives.
  void useSums(ir::RangeOp op) {
    Value first = make<ir::SinOp>(op.getSums()[0]), second = op.getSums()[1];
    Value product = make<arith::MulFOp>(first, second);
    Value value = tamed(product);
    declare(kindOf(value), value);
  }

  /// A RETURN in front of a range leaves it no work items.
  void emptyIfReturned(SmallVectorImpl<Value> &counts) {
    Value calm = noneRaised(raised), none = integer(0);
    for (Value &count : counts)
      count = make<arith::SelectOp>(calm, count, none);
  }

  void fillRange(ir::RangeOp op, ArrayRef<Extent> extents,
                 ArrayRef<Kind> sums) {
    OpBuilder::InsertionGuard guard(b);
    if (sums.empty())
      op.getBody()->getTerminator()->erase();
    b.setInsertionPointToEnd(op.getBody());
    Flags outerFlags = std::exchange(flags, Flags{});
    SmallVector<int> outerRaised = std::exchange(raised, {});
    std::vector<Local> outerLocals = std::exchange(locals, {});
    auto outerHook = std::exchange(rangeHere, {});
    std::vector<bool> outer = freeze({});
    {
      Scope scope(*this);
      for (auto [index, extent] : llvm::zip(op.getIndices(), extents))
        offer(within(index, std::max<int64_t>(extent.bound, 1)));
      chooseRoles(op.getIndices(), extents);
      Value column = time.array ? op.getIndices()[0] : Value();
      if (column && extents[0].bound > time.array->extents[1])
        column = {};
      if (column)
        readRow();
      workItem(sums);
      if (column)
        writeRow(op, column);
    }
    restore(outer);
    rangeHere = std::move(outerHook);
    locals = std::move(outerLocals);
    raised = outerRaised;
    flags = outerFlags;
  }

  /// What is read in this iteration; nothing else touches the array.
  void readRow() {
    Array &array = *time.array;
    array.role = Role::Common;
    common = {};
    for (int count = random.between(1, 2); count > 0; --count)
      offer(make<ir::LoadOp>(typeOf(array.kind), array.argument,
                             ValueRange{time.now, index(array.extents[1])}));
  }

  void writeRow(ir::RangeOp op, Value column) {
    Array &array = *time.array;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(op.getBody()->getTerminator());
    Value old = make<ir::LoadOp>(typeOf(array.kind), array.argument,
                                 ValueRange{time.now, column});
    Value change = number(array.kind, 2);
    Value product = make<arith::MulFOp>(old, change);
    Value value = tamed(product);
    ir::StoreOp::create(b, here(), value, array.argument,
                        ValueRange{time.next, column});
  }

  void workItem(ArrayRef<Kind> sums) {
    if (random.chance(30))
      flags.returns = declareFlag();
    declareSome(random.between(1, 2));
    if (random.chance(2 * localPercent))
      declareLocal();
    statements(random.between(2, 5), random.between(2, 3));
    sink();
    SmallVector<Value> yields;
    for (Kind kind : sums) {
      Value value = visible(kind);
      if (!value)
        value = expression(kind, 1);
      yields.push_back(value);
    }
    ir::YieldOp::create(b, here(), yields);
  }

  //===-- Who owns what ---------------------------------------------------===//

  void chooseRoles(ValueRange indices, ArrayRef<Extent> extents) {
    for (Array &array : arrays) {
      array.own = nullptr;
      array.column = {};
      if (array.isConstant) {
        array.role = Role::Read;
        continue;
      }
      array.own = owning(array, indices, extents);
      array.role = chooseRole(array);
      if (!isFloat(array.kind))
        chooseExtremum(array);
    }
    if (common)
      chooseCommon();
  }

  void chooseCommon() {
    SmallVector<Array *> found;
    for (Array &array : arrays)
      if (!array.isConstant && array.kind == Kind::F64)
        found.push_back(&array);
    if (!found.empty())
      random.pick(found)->role = Role::Common;
  }

  Role chooseRole(const Array &array) {
    int choice = random.below(100);
    bool canAdd = array.kind != Kind::Bool;
    if (canAdd && !isFloat(array.kind) && random.chance(15))
      return Role::Most;
    if (!array.own)
      return canAdd && (!inPlace || choice < 60) ? Role::Sum : Role::Read;
    if (canAdd && choice < 25)
      return Role::Sum;
    if (inPlace)
      return choice < 75 ? Role::Own : Role::Read;
    return choice < 35 ? Role::Own : Role::Write;
  }

  using Owning = std::function<Values()>;

  /// Indices that no other work item of the range uses; null if none are found.
  Owning owning(Array &array, ValueRange indices, ArrayRef<Extent> extents) {
    SmallVector<Owning> found;
    if (array.extents.size() == 1 && indices.size() == 1)
      ownElement(array.extents[0], indices[0], extents[0].bound, found);
    else if (array.extents.size() == 1)
      ownElementOfPair(array.extents[0], indices, extents, found);
    else if (array.extents.size() == 2 && indices.size() == 1)
      ownLine(array, indices[0], extents[0].bound, found);
    else if (array.extents.size() == 2)
      ownEntry(array.extents, indices, extents, found);
    return found.empty() ? Owning() : random.pick(found);
  }

  void ownElement(int64_t extent, Value i, int64_t bound,
                  SmallVectorImpl<Owning> &found) {
    if (bound > extent)
      return;
    auto plain = [i] { return Values{i}; };
    found.append(3, plain);
    found.push_back([=, this] {
      Value last = integer(extent - 1);
      return Values{make<arith::SubIOp>(last, i)};
    });
    if (bound < extent)
      found.push_back(
          [=, this, shift = random.between(1, int(extent - bound))] {
            Value offset = integer(shift);
            return Values{make<arith::AddIOp>(i, offset)};
          });
    found.push_back([=, this] {
      Value zero = integer(0, Kind::I32);
      Value narrow = make<arith::TruncIOp>(b.getI32Type(), i);
      Value same = make<arith::AddIOp>(narrow, zero);
      return Values{make<arith::ExtSIOp>(b.getI64Type(), same)};
    });
    if (2 * bound <= extent) {
      found.append(2, strided(i, 2, 1));
      found.append(2, strided(i, 1, bound));
    }
    for (Array &other : arrays)
      if (other.isPermutation && other.kind == Kind::I64 &&
          other.extents[0] >= bound && other.extents[0] <= extent)
        found.append(2, permuted(other, i));
  }

  /// i * `factor`, and the same plus `step`.
  Owning strided(Value i, int64_t factor, int64_t step) {
    return [=, this] {
      Value scale = integer(factor);
      Value at = factor == 1 ? i : make<arith::MulIOp>(i, scale);
      if (random.chance(50))
        return Values{at};
      Value offset = integer(step);
      return Values{make<arith::AddIOp>(at, offset)};
    };
  }

  Owning permuted(const Array &other, Value i) {
    return [=, this, array = other.argument] {
      return Values{make<ir::LoadOp>(b.getI64Type(), array, ValueRange(i))};
    };
  }

  void ownElementOfPair(int64_t extent, ValueRange indices,
                        ArrayRef<Extent> extents,
                        SmallVectorImpl<Owning> &found) {
    int64_t width = extents[1].bound;
    if (extents[0].bound * width > extent)
      return;
    Value i = indices[0], j = indices[1];
    found.push_back([=, this] {
      Value scale = integer(width);
      Value row = make<arith::MulIOp>(i, scale);
      return Values{make<arith::AddIOp>(row, j)};
    });
  }

  void ownLine(Array &array, Value i, int64_t bound,
               SmallVectorImpl<Owning> &found) {
    int64_t height = array.extents[0], width = array.extents[1];
    if (bound <= width && (bound > height || random.chance(65))) {
      array.column = i;
      found.push_back([=, this] { return Values{index(height), i}; });
    } else if (bound <= height) {
      found.push_back([=, this] { return Values{i, index(width)}; });
    }
  }

  void ownEntry(ArrayRef<int64_t> shape, ValueRange indices,
                ArrayRef<Extent> extents, SmallVectorImpl<Owning> &found) {
    Value i = indices[0], j = indices[1];
    if (extents[0].bound <= shape[0] && extents[1].bound <= shape[1])
      found.push_back([=] { return Values{i, j}; });
    if (extents[0].bound <= shape[1] && extents[1].bound <= shape[0])
      found.push_back([=] { return Values{j, i}; });
  }

  /// Of an array whose first index is the time of serial code.
  struct Time {
    Array *array = nullptr;
    Value now, next;
  };
  Time time;            ///< while ranges step
  bool inPlace = false; ///< arrays are read where they are written
  int size = 0;         ///< extent of most arrays
  Memory memory;
};

} // namespace

Case generate(MLIRContext &context, uint64_t seed) {
  return Generator(context, seed).run();
}

} // namespace costate::fuzz
