"""Settings: from flags, the environment, config.toml and defaults, and what refuses them."""

from pathlib import Path
from typing import Any

import pytest

from resumes.errors import InvalidArgument
from resumes.settings import Settings, Theme, load_settings


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def given(home: Path, content: str, **flags: Any) -> Settings:
    (home / "config.toml").write_text(content)
    return load_settings(home=home, **flags)


def test_everything_has_a_default(home: Path) -> None:
    settings = load_settings(home=home)
    assert (settings.host, settings.port, settings.workers) == ("127.0.0.1", 8000, 1)
    assert settings.database_url == f"sqlite:///{home}/resumes.db"
    assert settings.inbox == home / "inbox"
    assert settings.settle_s == 5
    assert (settings.poll, settings.done_keep_days, settings.on_import) == (False, None, None)
    assert settings.max_file_bytes == 64 * 1024**2 > settings.max_body_bytes


def test_flag_before_environment_before_file_before_default(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = 'port = 1\nhost = "file"\nworkers = 2\n'
    monkeypatch.setenv("RESUMES_PORT", "3")
    monkeypatch.setenv("RESUMES_HOST", "environment")
    settings = given(home, content, host="flag", port=None)
    assert (settings.host, settings.port, settings.workers) == ("flag", 3, 2)
    monkeypatch.setenv("RESUMES_PORT", "")
    assert load_settings(home=home).port == 1
    monkeypatch.setenv("RESUMES_HOME", str(home))
    assert load_settings().home == home


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("max_file_bytes = 1073741824\n", {"max_file_bytes": 1024**3}),
        ('poll = true\ndone_keep_days = 30\non_import = "a; b"\n',
         {"poll": True, "done_keep_days": 30, "on_import": "a; b"}),
        ('rate_per_minute = "unlimited"\nrate_per_hour = 7\n',
         {"rate_per_minute": 0, "rate_per_hour": 7}),
        ('theme = "light"\n[keymap]\n"resumes.delete" = "d,f8"\nkeys.create = "c"\n',
         {"theme": Theme.LIGHT, "keymap": {"resumes.delete": "d,f8", "keys.create": "c"}}),
    ],
)  # fmt: skip
def test_the_file_may_say(home: Path, content: str, expected: dict[str, Any]) -> None:
    settings = given(home, content)
    assert {name: getattr(settings, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("extra_section_types", "hobbies, , patents,", {"hobbies", "patents"}),
        ("done_keep_days", "0", 0),
        ("rate_per_day", "unlimited", 0),
        ("keymap", '{"keys.create": "c"}', {"keys.create": "c"}),
    ],
)
def test_the_environment_may_say(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: Any
) -> None:
    content = 'done_keep_days = 30\n[keymap]\n"resumes.delete" = "d,f8"\n'
    monkeypatch.setenv(f"RESUMES_{name.upper()}", value)
    assert getattr(given(home, content), name) == expected


def test_extra_section_types_reach_the_format(home: Path) -> None:
    accepted = given(home, 'extra_section_types = ["hobbies"]\nmax_body_bytes = 5000\n').format
    assert (accepted.extra_section_types, accepted.max_bytes) == (frozenset({"hobbies"}), 5000)


@pytest.mark.parametrize(
    ("line", "way_on"),
    [
        ('port = "x"', "a whole number from 0 to 65535"),
        ("port = 70000", "a whole number from 0 to 65535"),
        ("workers = 0", "a whole number from 1 to 64"),
        ("max_file_bytes = 1023", "a whole number from 1024 to 1073741824"),
        ("max_file_bytes = 1073741825", "a whole number from 1024 to 1073741824"),
        ("done_keep_days = -1", "a whole number from 0 to 36500"),
        ("done_keep_days = 40000", "a whole number from 0 to 36500"),
        ('done_keep_days = "7d"', "a whole number from 0 to 36500"),
        ("done_keep_days = 1.5", "a whole number from 0 to 36500"),
        ('disk_floor_bytes = "1 GB"', "a whole number from 0 to 4611686018427387904"),
        ("rate_per_day = -1", "a whole number from 0 to 1000000 or `unlimited`"),
        ('settle_s = "soon"', "a number from 0 to 3600"),
        ("scan_s = 0", "a number from 0.1 to 3600"),
        ('poll = "often"', "true or false"),
        ('rate_limit = "on?"', "true or false"),
        ('log_format = "xml"', "one of text, json"),
        ("host = 1", "a string"),
        ('on_import = ["a", "b"]', "a string"),
        ("extra_section_types = 7", "a list of at most 100 names of 1 to 100 printable characters"),
        ('keymap = ["d"]', "a table of strings"),
    ],
)
def test_what_a_setting_can_be_is_said_in_plain_words(home: Path, line: str, way_on: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        given(home, f"{line}\n")
    assert refused.value.message.startswith(f"Invalid {line.partition(' = ')[0]} ")
    assert refused.value.message.endswith(f" in {home / 'config.toml'}: use {way_on}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"port = ", r"Invalid configuration .*config\.toml"),
        (b"\xff\xfe", r"Invalid configuration .*config\.toml"),
        (b"prot = 1", r'Unknown setting "prot" in .*config\.toml'),
        (
            b'home = "/x"',
            r'Invalid home "/x" in .*: .* Use --home or RESUMES_HOME, and remove the line$',
        ),
        (None, r"Cannot read the configuration .*config\.toml"),
    ],
)
def test_a_bad_file_is_named(home: Path, content: bytes | None, message: str) -> None:
    if content is None:
        (home / "config.toml").mkdir()
    else:
        (home / "config.toml").write_bytes(content)
    with pytest.raises(InvalidArgument, match=message):
        load_settings(home=home)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PORT", "many", 'Invalid port "many" in RESUMES_PORT: use a whole number from 0 to 65535'),
        *(("RATE_PER_DAY", value, f'Invalid rate_per_day "{value}"')
          for value in ("-1", "1000001", "many")),
        *(("KEYMAP", value, "Invalid keymap")
          for value in ("keys.create=c", '["c"]', '{"keys.create": 3}')),
        ("ACESS_LOG", "1", "Unknown setting RESUMES_ACESS_LOG"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_environment_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(f"RESUMES_{name}", value)
    with pytest.raises(InvalidArgument) as refused:
        given(home, "port = 1\n")
    assert refused.value.message.startswith(message)


def test_variables_of_hooks_and_of_debugging_are_no_settings(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_DEBUG", "1")
    monkeypatch.setenv("RESUMES_IMPORT_DONE", "3")
    assert load_settings(home=home).port == 8000


def test_a_flag_that_cannot_be_used_is_no_fault_of_the_file(home: Path) -> None:
    with pytest.raises(InvalidArgument) as refused:
        given(home, "workers = 2\n", workers=65)
    assert refused.value.message == 'Invalid workers "65": use a whole number from 1 to 64'


def test_every_setting_has_a_sentence() -> None:
    source = (Path(__file__).parents[2] / "src/resumes/settings.py").read_text()
    for name in Settings.model_fields:
        after = source.split(f"\n    {name}: ")[1].splitlines()[1]
        assert after.strip().startswith('"""'), name
