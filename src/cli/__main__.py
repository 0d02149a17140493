"""The program's entry point, as `resumes` and as `python -m cli`, which is how `resumes up` starts
its processes."""

import sys

INTERRUPTED = 130
FAILED = 1
"""Same values as in `cli.errors`, which is not imported yet."""

SYSTEMS = ("linux", "darwin")
"""Where all modules can be imported; README.md says what macOS lacks."""


def main() -> None:
    """Run the console script and end the process; after Ctrl-C, however early, without a word.

    On an unsupported system, print one line before importing anything it lacks.
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
