"""What a terminal shows of what a command writes to it."""

from cli.status_line import REWRITE


def screen(written: str) -> list[str]:
    """The lines that a terminal shows after this was written to it."""
    lines = [""]
    for part in written.replace(REWRITE, "\0").replace("\r\n", "\n"):
        if part == "\0":
            lines[-1] = ""
        elif part == "\n":
            lines.append("")
        else:
            lines[-1] += part
    return lines
