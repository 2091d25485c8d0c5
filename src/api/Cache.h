#pragma once
/// The one cache of the process.

#include "cache/Store.h"

#include <memory>

namespace costate::api {

/// What the environment and use_cache() ask for now; null for none.
std::shared_ptr<cache::Store> currentCache();

} // namespace costate::api
