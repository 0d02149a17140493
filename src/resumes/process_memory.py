"""How long-running processes tune Python's garbage collector and the C library's allocator."""

import ctypes
import gc

GC_THRESHOLD = 50_000
"""The number of new objects after which the youngest generation is collected."""

MALLOC_THRESHOLD_BYTES = 128 * 1024
"""A block of at least this size is allocated with mmap, and returned to the system when it is freed."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Parameters of glibc's mallopt."""


def tune_gc() -> None:
    """Make the collector run less often. Call it once, when all modules are loaded.

    A resume is a tree without cycles, which reference counting alone frees; by default the
    collector traverses half-read ones again and again, and every module with them.
    """
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])


def limit_malloc() -> None:
    """Make the allocator return freed memory to the system. Call it once, before the first large body.

    When a large block is freed, glibc raises its threshold and keeps such blocks, in a heap for each
    thread, so a minute of large bodies would hold their memory for good. Other C libraries are left
    as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, MALLOC_THRESHOLD_BYTES)
        mallopt(M_TRIM_THRESHOLD, MALLOC_THRESHOLD_BYTES)
