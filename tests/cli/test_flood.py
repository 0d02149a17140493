"""The first lines are said, the others counted."""

from click import unstyle

from cli.flood import FEW, FLOOD_S, Flood


def said(flood: Flood, count: int, *, now_s: float) -> int:
    """How many of so many files at this time had a line at once."""
    lines = [flood.find_line("a.json", None, now_s) for _ in range(count)]
    return sum(text is not None for text in lines)


def test_the_first_lines_are_said() -> None:
    flood = Flood("held")
    text = flood.find_line("a\x1b.json", "Full", 0.0)
    assert text is not None
    assert unstyle(text) == "held       a\\x1b.json: Full"
    assert said(flood, FEW - 1, now_s=0.0) == FEW - 1
    assert not flood
    assert flood.end() == []


def test_the_others_are_counted_until_the_end() -> None:
    flood = Flood("done")
    assert said(flood, 1_000 + FEW, now_s=0.0) == FEW
    assert said(flood, 234, now_s=10 * FLOOD_S) == 0
    assert flood
    assert list(map(unstyle, flood.end())) == ["done       1,234 more files"]
    assert flood.end() == []
    assert said(flood, 1, now_s=10 * FLOOD_S) == 1


def test_few_that_were_counted_have_their_lines_in_the_end() -> None:
    flood = Flood("done")
    said(flood, FEW, now_s=0.0)
    for number in range(FEW):
        assert flood.find_line(f"{number}.json", "Warned", 0.0) is None
    assert list(map(unstyle, flood.end())) == [
        f"done       {number}.json: Warned" for number in range(FEW)
    ]


def test_lines_that_come_slowly_are_all_said() -> None:
    flood = Flood("done")
    assert sum(said(flood, 1, now_s=FLOOD_S / FEW * number) for number in range(200)) == 200
