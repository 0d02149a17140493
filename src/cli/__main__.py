"""Run the program as `resumes` or as `python -m cli`, which `resumes up` uses for its processes."""

import sys

INTERRUPTED = 130
FAILED = 1
"""These codes equal the codes in `cli.errors`, which is not imported yet."""

SYSTEMS = ("linux", "darwin")
"""Systems on which all modules can be imported. README.md lists the features that macOS lacks."""


def main() -> None:
    """Run the console script and end the process. Print nothing after Ctrl-C, however early.

    On an unsupported system, print an error before modules that it lacks are imported.
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
