"""Usage errors name the value and what can be used, in our own words."""

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["serve", "--port", "many"],
            'Invalid --port "many": use a whole number from 0 to 65535. See `resumes serve --help`',
        ),
        (
            ["serve", "--port", "70000"],
            'Invalid --port "70000": use a whole number from 0 to 65535',
        ),
        (["watch", "--settle", "-1"], 'Invalid --settle "-1.0": use a number from 0 to 3600'),
        (["imports", "list", "--outcome", "x"], 'Invalid --outcome "x": use held, failed, dup'),
        (["watch", "nowhere"], "Invalid ROOT: directory 'nowhere' does not exist"),
        (["validate", "nowhere"], "Invalid PATH: path 'nowhere' does not exist"),
        (["imports", "list", "--reason", "x"], 'Invalid --reason: "x" is no reason: use one of'),
        (["validate"], "Missing argument 'PATH...'. See `resumes validate --help`"),
        (["list", "--lmit", "3"], "No such option '--lmit'. Did you mean '--limit'? See `resumes"),
        (["db", "backup", "--keeep"], "No such option '--keeep'. Did you mean '--keep'? See"),
        (["qqq"], "No such command 'qqq'. See `resumes --help`"),
        (["acounts"], "No such command 'acounts'. Did you mean 'accounts'? See `resumes --help`"),
        (["accounts", "lst"], "No such command 'lst'. Did you mean 'list'? See"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_used_is_said_with_what_can(
    run: CommandLine,
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run.fails(2, *words).startswith(message)


def test_a_flag_that_is_a_setting_here_says_so(run: CommandLine) -> None:
    assert run.fails(2, "up", "--host", "0.0.0.0") == (
        "No such option '--host'. It is a setting: RESUMES_HOST in the environment, or `host` in "
        "config.toml. See `resumes up --help`"
    )
