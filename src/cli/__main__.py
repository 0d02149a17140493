"""The program's entry point, as `resumes` and as `python -m cli`, which is how `resumes up` starts
its processes."""

import sys

INTERRUPTED = 130
FAILED = 1
"""As `cli.errors` has them, which is not imported yet."""

SYSTEMS = ("linux", "darwin")
"""Where all modules can be imported; README.md says what macOS lacks."""


def main() -> None:
    """Run the console script and end the process; after Ctrl-C, however early, without a word.

    On systems that have not what it is made of, say so before anything of that is imported.
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
