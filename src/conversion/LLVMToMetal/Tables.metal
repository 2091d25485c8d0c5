
// Of tables of constants, from any byte on.
static inline uint costate_table32(uint at) {
  uint word = at / 4, shift = at % 4 * 8;
  uint low = costate_tables[word] >> shift;
  return shift ? low | costate_tables[word + 1] << (32 - shift) : low;
}
static inline uint costate_table8(uint at) {
  return costate_table32(at) & 0xff;
}
static inline uint costate_table16(uint at) {
  return costate_table32(at) & 0xffff;
}
static inline ulong costate_table64(uint at) {
  return ulong(costate_table32(at + 4)) << 32 | costate_table32(at);
}
