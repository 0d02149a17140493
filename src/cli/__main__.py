"""The program's entry point, as `resumes` and as `python -m cli`, which is how `resumes up` starts
its processes."""

import sys

INTERRUPTED = 130
"""As `cli.errors` has it, which is not imported yet."""


def main() -> None:
    """Run the console script and end the process; after Ctrl-C, however early, without a word."""
    try:
        from cli import main as command_line

        command_line.main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
