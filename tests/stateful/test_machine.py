import pytest

from tests.stateful import machine


@pytest.mark.parametrize(
    ("examples", "is_seeded", "is_always_the_same"),
    [
        (machine.FEW, False, True),
        (machine.FEW, True, False),
        (machine.FEW + 1, False, False),
        (machine.FEW + 1, True, False),
    ],
)
def test_a_seed_wins_over_the_sequences_that_are_always_the_same(
    examples: int, is_seeded: bool, is_always_the_same: bool
) -> None:
    chosen = machine.how(examples=examples, steps=1, is_seeded=is_seeded)

    assert chosen.derandomize is is_always_the_same
