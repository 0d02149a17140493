"""How full an account is, in text as well as in colour."""

from textual.content import Content

from tui.text import joined, safe

NEAR_PERCENT = 80
BAR_CELLS = 8


def quota_bar(used: int, maximum: int | None) -> Content:
    """`██████░░ 812/1,000 81 % !`: near the limit it ends in `!`, at or over it in `!!`."""
    if maximum is None:
        return safe(f"{'·' * BAR_CELLS} {used:,}, unlimited")
    percent = percent_used(used, maximum)
    style, mark = _alarm(percent)
    filled = min(BAR_CELLS, percent * BAR_CELLS // 100)
    bar = "█" * filled + "░" * (BAR_CELLS - filled)
    return joined([safe(bar, style), safe(f"{used:,}/{maximum:,} {percent} %{mark}")], by=" ")


def percent_used(used: int, maximum: int) -> int:
    """Rounded down, so that 100 means full; a plan of none is always full."""
    return 100 if maximum == 0 else used * 100 // maximum


def _alarm(percent: int) -> tuple[str, str]:
    if percent >= 100:
        return "$error", " !!"
    if percent >= NEAR_PERCENT:
        return "$warning", " !"
    return "$success", ""
