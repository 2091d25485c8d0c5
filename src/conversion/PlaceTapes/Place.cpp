#include "conversion/PlaceTapes/Place.h"

using namespace mlir;

namespace costate::conversion {

Value roomOf(RowBuilder &b, const Place &place, int64_t rows) {
  if (place.keep != Keep::Guarded)
    return {};
  Value left = b.sub(b.most(place.limit, place.row), place.row);
  return rows == 1 ? left : arith::DivUIOp::create(b, left, b.i32(rows));
}

Place leafIteration(RowBuilder &b, const Place &place, Value iteration,
                    Value room, int64_t rows) {
  if (!place.writes())
    return place;
  Place here = place.at(b.add(place.row, b.times(iteration, rows)));
  if (room)
    here.fits = b.less(iteration, room);
  return here;
}

Value rowAfter(RowBuilder &b, const Place &place, Value iterations,
               int64_t rows) {
  return place.measures() ? b.addUpTo(place.row, b.timesUpTo(iterations, rows))
                          : b.add(place.row, b.times(iterations, rows));
}

Value rowAfter(RowBuilder &b, const Place &place, int64_t rows) {
  if (!place.counts() || rows == 0)
    return place.row;
  return place.measures() ? b.addUpTo(place.row, b.i32(rows))
                          : b.add(place.row, b.i32(rows));
}

} // namespace costate::conversion
