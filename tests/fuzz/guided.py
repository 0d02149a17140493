"""One target under libFuzzer, which keeps every input that reaches new code of ours.

Run by `python -m tests.fuzz` in a process of its own, as libFuzzer ends it: the target's name,
then libFuzzer's own arguments.
"""

import importlib
import random
import sys
from collections.abc import Sequence
from typing import Any, Final

OURS: Final = ["resumes", "server", "importer", "tui", "cli"]
"""The packages whose code counts."""


def main(arguments: Sequence[str]) -> None:
    """Does not return: libFuzzer exits with 0 when its time is over, otherwise with a finding."""
    # Both come from requirements/fuzz.txt, or after it: atheris has to see our modules imported.
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=OURS):
        targets = importlib.import_module("tests.fuzz.targets")
    target = targets.TARGETS[arguments[0]]

    def change(data: bytes, max_bytes: int, seed: int) -> bytes:
        def change_bytes(some: bytes) -> bytes:
            changed: bytes = atheris.Mutate(some, max(len(some), 1) + 64)
            return changed

        made: bytes = target.change(bytes(data), random.Random(seed), change_bytes)
        return made[:max_bytes]

    options = {"custom_mutator": change} if target.change is not None else {}
    atheris.Setup([sys.argv[0], *arguments[1:]], target.check, **options)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
