"""`qd.simt.warp`: what the lanes of a mask do together."""

from __future__ import annotations

from typing import Any

from costate.lang.trace import groups
from costate.lang.trace.groups import (active_mask, match_all, match_any, shuffle, shuffle_down, shuffle_up, shuffle_xor,
                                       vote_all as all_nonzero, vote_any as any_nonzero, vote_unique as unique,
                                       warp_sync as sync)

shfl_sync_i32 = shfl_sync_f32 = shfl_sync = shuffle
shfl_up_i32 = shfl_up_f32 = shfl_up = shuffle_up
shfl_down_i32 = shfl_down_f32 = shfl_down = shuffle_down
shfl_xor_i32 = shfl_xor_f32 = shfl_xor = shuffle_xor


def ballot(predicate: Any, mask: Any = groups.ALL_LANES) -> Any:
    """The lanes where `predicate` is not 0, a bit for each."""
    return groups.ballot(mask, predicate)
