"""Tune Python's garbage collector and the C library's allocator for long-running processes."""

import ctypes
import gc

GC_THRESHOLD = 50_000
"""The number of new objects after which the youngest generation is collected."""

MALLOC_THRESHOLD_BYTES = 128 * 1024
"""The minimum size of a block that is allocated with mmap and returned to the system when freed."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Parameters of glibc's mallopt."""


def tune_gc() -> None:
    """Make the collector run less often. Call it once, after all modules are loaded.

    A resume is a tree without cycles, so reference counting is enough to free it. By default, the
    collector would repeatedly traverse resumes that are being parsed, and all modules with them.
    """
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])


def limit_malloc() -> None:
    """Make the allocator return freed memory to the system. Call it once, before the first large body.

    By default, glibc raises its threshold when a large block is freed, and then keeps such blocks
    in a heap for each thread, so the memory of large bodies would never be returned. Other C
    libraries are not changed.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, MALLOC_THRESHOLD_BYTES)
        mallopt(M_TRIM_THRESHOLD, MALLOC_THRESHOLD_BYTES)
