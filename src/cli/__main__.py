"""The program's entry point, as `resumes` and as `python -m cli`. `resumes up` starts its processes
with the latter."""

import sys

INTERRUPTED = 130
FAILED = 1
"""The same values as in `cli.errors`, which is not imported yet."""

SYSTEMS = ("linux", "darwin")
"""Systems on which all modules can be imported; README.md says what macOS lacks."""


def main() -> None:
    """Run the console script and end the process; after Ctrl-C, however early, print nothing.

    On an unsupported system, print one line before importing anything that it lacks.
    """
    if sys.platform not in SYSTEMS:
        sys.stderr.write(
            f"Error: resumes does not run on this system ({sys.platform}). Use Linux; on Windows, "
            "install it in WSL\n"
        )
        sys.exit(FAILED)
    try:
        from cli import main as command_line

        command_line.main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
