"""Settings: from flags, the environment, `config.toml` and defaults, and what refuses them."""

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.session import Session
from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.settings import Settings, Theme, load_settings
from tests.command.conftest import CommandLine


def test_the_next_command_carries_the_flags_on() -> None:
    assert Session().command_line("list") == "resumes list"
    session = Session(home=Path("/my home"), database="sqlite:////x.db")
    assert session.command_line("list") == (
        "resumes --home '/my home' --database sqlite:////x.db list"
    )


@pytest.mark.parametrize(
    ("database", "flags"),
    [
        ("postgresql://u:secret@h/db", " --database postgresql://u@h/db"),
        ("postgresql://u@h/db?sslpassword=secret", " --database postgresql://u@h/db"),
        ("u:secret@h", ""),
    ],
)
def test_the_next_command_holds_no_password(database: str, flags: str) -> None:
    assert Session(database=database).command_line("list") == f"resumes{flags} list"


def test_the_next_command_begins_as_this_one_did_when_the_shell_would_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    script = tmp_path / ".venv" / "bin" / "resumes"
    script.touch(mode=0o755)
    monkeypatch.setattr("sys.argv", [str(script)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert Session().command_line("list") == f"{script} list"
    monkeypatch.chdir(tmp_path)
    assert Session().command_line("list") == ".venv/bin/resumes list"
    monkeypatch.chdir("/")
    assert Session().command_line("list") == f"{script} list"
    monkeypatch.setenv("PATH", str(script.parent))
    assert Session().command_line("list") == "resumes list"


WHOLE_PORT = "use a whole number from 0 to 65535"
ANALYZER = 'a list of strings with {file}, such as ["/usr/local/bin/analyze", "{file}"]'
NAMES = "use a list of at most 100 names of 1 to 100 printable characters"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("port = true", f'Invalid port "True" in FILE: {WHOLE_PORT}'),
        ("rate_per_day = false", "use a whole number from 0 to 1000000 or `unlimited`"),
        ("client_timeout_s = 1e-300", "use a number from 0.1 to 3600"),
        ("client_timeout_s = nan", 'Invalid client_timeout_s "nan" in FILE'),
        (
            "scan_s = 2",
            'The setting "scan_s" in FILE is gone: folders are scanned every 2 seconds. Remove it',
        ),
        (
            "body_memory_bytes = 1",
            "is gone: an API process holds up to 64 MiB of bodies. Remove it",
        ),
        ("disk_floor_bytes = 0", "is gone: 64 MiB stay free on each disk. Remove it"),
        ('extra_section_types = ["a", ""]', f'Invalid extra_section_types "" in FILE: {NAMES}'),
        (r'extra_section_types = ["a\u001b[2J"]', rf'"a\x1b[2J" in FILE: {NAMES}'),
        (r'extra_section_types = "a\nb"', rf'"a\nb" in FILE: {NAMES}'),
        (r'extra_section_types = ["a\u202eb"]', rf'"a\u202eb" in FILE: {NAMES}'),
        (f"extra_section_types = ['{'a' * 101}']", NAMES),
        (f"extra_section_types = {[str(number) for number in range(101)]}", NAMES),
        (r'host = "127.0.0.1\u0000.example"', r'host "127.0.0.1\x00.example" in FILE: remove'),
        (r'on_import = "echo \u0000"', r'Invalid on_import "echo \x00" in FILE: remove'),
        (r'database = "sqlite:///a\u0000"', 'Invalid database "…" in FILE: remove'),
        (
            'home = "/elsewhere"',
            'Invalid home "/elsewhere" in FILE: the home is always the folder with this file',
        ),
        ("prot = 1", 'Unknown setting "prot" in FILE'),
        ("port = ", "Invalid configuration FILE"),
        (f"{'x' * 30_000} = 1", f'Unknown setting "{"x" * 80}" in FILE'),
        (f"port = {'9' * 5_000}", "Invalid configuration FILE: a number has too many digits"),
        (f"port = 0x{'f' * 5_000}", f'Invalid port "…" in FILE: {WHOLE_PORT}'),
        (f"port = {'[' * 5_000}{']' * 5_000}", "Invalid configuration FILE: it is nested too deep"),
        # Newer Pythons can write it out, of which the beginning is shown; others say "…". The newest
        # ones read at most 1,000 parts.
        (f"keymap.{'a.' * 990}b = 'c'", '" in FILE: use a table of strings'),
        (b"port = 1 # \xe9", "Invalid configuration FILE: byte 11 is not UTF-8. Save it as UTF-8"),
        (" " * 33_000, "Invalid configuration FILE: larger than 32768 bytes. Shorten it"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_setting_that_cannot_be_used_is_a_line_and_exit_2(
    run: CommandLine, content: str | bytes, line: str
) -> None:
    run.home.mkdir()
    file = run.home / "config.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())

    told = run.fails(2, "list").replace(str(file), "FILE")

    assert line in told
    assert len(told) < 300


def test_what_is_no_regular_file_is_no_configuration(run: CommandLine) -> None:
    run.home.mkdir()
    file = run.home / "config.toml"

    def listen() -> None:
        with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(run.home):
            listener.bind(file.name)

    makers: list[tuple[Callable[[], None], Callable[[], None]]] = [
        (lambda: os.mkfifo(file), file.unlink),  # would wait for a writer
        (lambda: file.symlink_to("/dev/zero"), file.unlink),  # would never end
        (listen, file.unlink),
        (file.mkdir, file.rmdir),
    ]
    for make, remove in makers:
        make()
        said = run.fails(2, "list")
        assert said.startswith(f"Cannot read the configuration {file}: not a regular file.")
        remove()

    file.symlink_to("of-all.toml")
    assert run.fails(2, "list") == (
        f"Cannot read the configuration {file}: the link is broken. Create its target, or remove it"
    )
    (run.home / "of-all.toml").write_text("port = 'x'", encoding="ascii")
    assert f'Invalid port "x" in {file}' in run.fails(2, "list")


def test_variables_that_cannot_be_used_are_a_line_and_exit_2(
    run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.home.mkdir()
    for name, value, line in (
        ("KEYMAP", '{"a":' * 20_000, 'in RESUMES_KEYMAP: use JSON, such as {"resumes.delete"'),
        ("EXTRA_SECTION_TYPES", "a,b\x1b", r'"b\x1b" in RESUMES_EXTRA_SECTION_TYPES: use a list'),
        ("CLIENT_TIMEOUT_S", "1e-300", 'client_timeout_s "1e-300" in RESUMES_CLIENT_TIMEOUT_S'),
        ("DATABASE", "x" * 30_000, f'Invalid database "{"x" * 80}": use sqlite:///PATH'),
        (
            "DATABASE",
            "postgresql://u:\udcff@h/x",
            'Invalid database "postgresql://…": it is not UTF-8',
        ),
        ("X" * 30_000, "1", "Unknown setting RESUMES_XXX"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(f"RESUMES_{name}", value)
            told = run.fails(2, "list")
        assert line in told
        assert len(told) < 300
    too_long = CommandLine(Path("x" * 30_000)).fails(2, "list")
    assert too_long == f'Invalid home "{"x" * 80}": File name too long. Use a shorter one'
    assert len(run.fails(2, "serve", "--port", "9" * 5_000)) < 300


# Where they come from


def given(folder: Path, content: str, **flags: Any) -> Settings:
    (folder / "config.toml").write_text(content)
    return load_settings(home=folder, **flags)


def test_flag_before_environment_before_file_before_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = 'port = 1\nhost = "file"\nworkers = 2\n'
    monkeypatch.setenv("RESUMES_PORT", "3")
    monkeypatch.setenv("RESUMES_HOST", "environment")
    settings = given(tmp_path, content, host="flag", port=None)
    assert (settings.host, settings.port, settings.workers) == ("flag", 3, 2)
    monkeypatch.setenv("RESUMES_PORT", "")
    assert load_settings(home=tmp_path).port == 1
    monkeypatch.setenv("RESUMES_HOME", str(tmp_path))
    assert load_settings().home == tmp_path


def test_a_database_without_an_address_is_not_that_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_DATABASE", "")
    run = CommandLine(tmp_path)
    run.succeeds("accounts", "create", "acme")
    assert 'Invalid database ""' in run.fails(2, "--database", "", "accounts", "list")
    (tmp_path / "config.toml").write_text('database = ""\n')
    assert 'Invalid database ""' in run.fails(2, "accounts", "list")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("max_file_bytes = 1073741824\npdf_timeout_s = 120\n",
         {"max_file_bytes": 1024**3, "pdf_timeout_s": 120}),
        ('poll = true\ndone_keep_days = 30\non_import = "a; b"\n',
         {"poll": True, "done_keep_days": 30, "on_import": "a; b"}),
        ('analyzer = ["analyze", "{file}"]\nanalyzers = 2\n',
         {"analyzer": ("analyze", "{file}"), "analyzers": 2, "analyzer_timeout_s": 120.0}),
        ('rate_per_minute = "unlimited"\nrate_per_hour = 7\n',
         {"rate_per_minute": 0, "rate_per_hour": 7}),
        ('theme = "light"\n[keymap]\n"resumes.delete" = "d,f8"\nkeys.create = "c"\n',
         {"theme": Theme.LIGHT, "keymap": {"resumes.delete": "d,f8", "keys.create": "c"}}),
    ],
)  # fmt: skip
def test_the_file_may_say(tmp_path: Path, content: str, expected: dict[str, Any]) -> None:
    settings = given(tmp_path, content)
    assert {name: getattr(settings, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("extra_section_types", "hobbies, , patents,", {"hobbies", "patents"}),
        ("done_keep_days", "0", 0),
        ("rate_per_day", "unlimited", 0),
        ("keymap", '{"keys.create": "c"}', {"keys.create": "c"}),
        ("analyzer", '["/opt/a b", "--in={file}"]', ("/opt/a b", "--in={file}")),
        ("analyzer", "'/opt/a b' {file}", ("/opt/a b", "{file}")),
    ],
)
def test_the_environment_may_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: Any
) -> None:
    content = 'done_keep_days = 30\n[keymap]\n"resumes.delete" = "d,f8"\n'
    monkeypatch.setenv(f"RESUMES_{name.upper()}", value)
    assert getattr(given(tmp_path, content), name) == expected


@pytest.mark.parametrize(
    ("line", "way_on"),
    [
        ("port = 70000", "a whole number from 0 to 65535"),
        ("max_file_bytes = 1073741825", "a whole number from 1024 to 1073741824"),
        ("done_keep_days = -1", "a whole number from 0 to 36500"),
        ('done_keep_days = "7d"', "a whole number from 0 to 36500"),
        ("rate_per_day = -1", "a whole number from 0 to 1000000 or `unlimited`"),
        ('settle_s = "soon"', "a number from 0 to 3600"),
        ('poll = "often"', "true or false"),
        ('rate_limit = "on?"', "true or false"),
        ('log_format = "xml"', "one of text, json"),
        ("host = 1", "a string"),
        ('on_import = ["a", "b"]', "a string"),
        ("extra_section_types = 7", "a list of at most 100 names of 1 to 100 printable characters"),
        ('keymap = ["d"]', "a table of strings"),
        ('analyzer = ["analyze"]', ANALYZER),
        ('analyzer = ["", "{file}"]', ANALYZER),
        ('analyzer = "analyze \\"{file}"', ANALYZER),
        ('analyzer = "[1, \\"{file}\\"]"', ANALYZER),
        ("analyzer = [true]", ANALYZER),
        ("analyzer_timeout_s = 0", "a number above 0, at most 3600"),
        ("analyzers = 0", "a whole number from 1 to 64"),
    ],
)
def test_what_a_setting_can_be_is_said_in_plain_words(
    tmp_path: Path, line: str, way_on: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        given(tmp_path, f"{line}\n")
    assert refused.value.message.startswith(f"Invalid {line.partition(' = ')[0]} ")
    assert refused.value.message.endswith(f" in {tmp_path / 'config.toml'}: use {way_on}")


def test_a_user_without_a_home_is_led_to_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(StoreUnavailable, match=r"No home: .* Set RESUMES_HOME, or use --home"):
        load_settings()


def test_variables_of_hooks_and_of_debugging_are_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_DEBUG", "1")
    monkeypatch.setenv("RESUMES_IMPORT_DONE", "3")
    assert load_settings(home=tmp_path).port == 8000


def test_a_flag_that_cannot_be_used_is_no_fault_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument) as refused:
        given(tmp_path, "workers = 2\n", workers=65)
    assert refused.value.message == 'Invalid workers "65": use a whole number from 1 to 64'
