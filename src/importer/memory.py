"""How often a process looks for memory that only a collection frees."""

import gc

YOUNG = 50_000
"""Objects made and kept until the youngest are looked through."""


def collect_seldom() -> None:
    """To be called once, by a process that imports, when all is loaded.

    A resume is a tree without cycles, freed by counting references alone; at the usual pace the
    collector looks through half-read ones again and again, and through every module beside them.
    """
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
