#pragma once
/// Memory straight from the system, for what is large or grows.

#include <cstddef>

namespace costate::runtime::cpu {

/// `bytes` rounded up to whole pages; 0 if that overflows.
size_t wholePages(size_t bytes);
/// Of the page that `address` lies in.
std::byte *beginOfPage(std::byte *address);
/// Zeroed pages, or null. `bytes` is a multiple of the page size, not 0;
/// `margin` as many behind them that nobody is expected to use.
std::byte *mapPages(size_t bytes, size_t margin = 0);
/// Grows a mapping, moving it if need be; null, with the old one intact, if the
/// system refuses.
std::byte *growPages(std::byte *pages, size_t oldBytes, size_t newBytes);
/// Zeroes part of a mapping and gives the memory of its whole pages back.
void clearPages(std::byte *begin, size_t bytes);
void unmapPages(std::byte *pages, size_t bytes);

} // namespace costate::runtime::cpu
