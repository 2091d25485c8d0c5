#include "costate/cache.h"

#include "api/Cache.h"
#include "api/Checked.h"
#include "base/Fork.h"
#include "cache/Settings.h"

using namespace costate;
using namespace costate::api;

namespace {

struct Chosen {
  Mutex mutex;
  cache::Settings byProgram, inUse;
  std::shared_ptr<cache::Store> store;
};

/// Never destroyed: kernels of static storage duration may outlive any order.
Chosen &chosen() {
  static auto &chosen = *new Chosen;
  return chosen;
}

} // namespace

std::shared_ptr<cache::Store> api::currentCache() {
  Chosen &now = chosen();
  std::lock_guard lock(now.mutex);
  cache::Settings wanted = checked(cache::settingsFor(now.byProgram));
  if (!wanted.enabled || wanted.folder.empty())
    return nullptr;
  if (!now.store || wanted != now.inUse)
    now.store = std::make_shared<cache::Store>(wanted.folder, wanted.limit);
  now.inUse = wanted;
  return now.store;
}

void costate::use_cache(const CacheOptions &options) {
  Chosen &now = chosen();
  std::lock_guard lock(now.mutex);
  now.byProgram = {options.enabled, options.folder, options.limit};
}

CacheStatistics costate::cache_statistics() {
  std::shared_ptr<cache::Store> store = currentCache();
  if (!store)
    return {};
  return {store->counts.compiled, store->counts.loaded, store->folder(),
          store->problem(), store->bytes()};
}

void costate::clear_cache() {
  if (std::shared_ptr<cache::Store> store = currentCache())
    store->clear();
}
