"""How a process that takes in resumes uses memory."""

import ctypes
import gc

YOUNG = 50_000
"""Objects made and kept until the youngest are looked through."""

LARGE_BYTES = 128 * 1024
"""What is larger is had from the system alone, and given back when it is free."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""What glibc's mallopt calls its parameters."""


def collect_seldom() -> None:
    """To be called once, by a process that takes in resumes, when all is loaded.

    A resume is a tree without cycles, freed by counting references alone; at the usual pace the
    collector looks through half-read ones again and again, and through every module beside them.
    """
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])


def keep_little() -> None:
    """To be called once, by a process that anyone may send large bodies to, before the first.

    What is free is given back to the system.

    glibc takes a large body that was freed as a reason to keep such sizes, in a heap for each
    thread, so a minute of them would be held for good. Other C libraries do as they do.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(M_TRIM_THRESHOLD, LARGE_BYTES)
