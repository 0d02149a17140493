from pathlib import Path

import pytest

from resumes.errors import InvalidArgument
from resumes.settings import Settings, Theme, load_settings


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def test_everything_has_a_default(home: Path) -> None:
    settings = load_settings(home=home)
    assert (settings.host, settings.port, settings.workers) == ("127.0.0.1", 8000, 1)
    assert settings.database_url == f"sqlite:///{home}/resumes.db"
    assert settings.inbox == home / "inbox"


def test_flag_before_environment_before_file_before_default(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.toml").write_text('port = 1\nhost = "file"\nworkers = 2\n')
    monkeypatch.setenv("RESUMES_PORT", "3")
    monkeypatch.setenv("RESUMES_HOST", "environment")
    settings = load_settings(home=home, host="flag")
    assert (settings.host, settings.port, settings.workers) == ("flag", 3, 2)
    assert settings.settle_s == 5


def test_a_flag_that_was_not_given_does_not_count(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_PORT", "3")
    assert load_settings(home=home, port=None).port == 3


def test_the_home_comes_from_the_environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESUMES_HOME", str(home))
    assert load_settings().home == home


def test_extra_section_types_reach_the_format(home: Path) -> None:
    (home / "config.toml").write_text('extra_section_types = ["hobbies"]\nmax_body_bytes = 5000\n')
    given = load_settings(home=home).format
    assert (given.extra_section_types, given.max_bytes) == (frozenset({"hobbies"}), 5000)


def test_a_file_of_several_resumes_may_be_larger_than_one(home: Path) -> None:
    default = load_settings(home=home)
    assert default.max_file_bytes == 64 * 1024**2 > default.max_body_bytes
    (home / "config.toml").write_text("max_file_bytes = 1073741824\n")
    assert load_settings(home=home).max_file_bytes == 1024**3
    for refused in (1_023, 1024**3 + 1):
        with pytest.raises(InvalidArgument, match=f'Invalid max_file_bytes "{refused}"'):
            load_settings(home=home, max_file_bytes=refused)


def test_extra_section_types_come_from_the_environment_separated_by_commas(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_EXTRA_SECTION_TYPES", "hobbies, , patents,")
    assert load_settings(home=home).extra_section_types == {"hobbies", "patents"}


def test_an_empty_variable_does_not_count(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESUMES_PORT", "")
    assert load_settings(home=home).port == 8000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("port = ", "Invalid configuration .*config.toml"),
        ("prot = 1", 'Unknown setting "prot" in .*config.toml'),
        ("port = 70000", 'Invalid port "70000" in .*config.toml: .*65535'),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(home: Path, content: str, message: str) -> None:
    (home / "config.toml").write_text(content)
    with pytest.raises(InvalidArgument, match=message):
        load_settings(home=home)


def test_a_file_that_cannot_be_read_is_named(home: Path) -> None:
    (home / "config.toml").mkdir()
    with pytest.raises(InvalidArgument, match=r"Cannot read the configuration .*config\.toml"):
        load_settings(home=home)
    (home / "config.toml").rmdir()
    (home / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgument, match="Invalid configuration"):
        load_settings(home=home)


def test_the_importer_can_be_set_up_in_the_file_and_in_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = load_settings(home=home)
    assert (default.poll, default.done_keep_days, default.on_import) == (False, None, None)

    (home / "config.toml").write_text('poll = true\ndone_keep_days = 30\non_import = "a; b"\n')
    monkeypatch.setenv("RESUMES_DONE_KEEP_DAYS", "0")
    given = load_settings(home=home)
    assert (given.poll, given.done_keep_days, given.on_import) == (True, 0, "a; b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("done_keep_days = -1", 'Invalid done_keep_days "-1" in .*: .*0'),
        ("done_keep_days = 40000", 'Invalid done_keep_days "40000" in .*: .*36500'),
        ('done_keep_days = "7d"', 'Invalid done_keep_days "7d" in '),
        ('poll = "often"', 'Invalid poll "often" in '),
        ('on_import = ["a", "b"]', "Invalid on_import .* string"),
    ],
)
def test_what_the_importer_cannot_use_is_named(home: Path, content: str, message: str) -> None:
    (home / "config.toml").write_text(content)
    with pytest.raises(InvalidArgument, match=message):
        load_settings(home=home)


def test_what_a_hook_is_told_is_no_setting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESUMES_IMPORT_DONE", "3")
    assert load_settings(home=home).port == 8000


def test_rates_are_numbers_or_unlimited(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "config.toml").write_text('rate_per_minute = "unlimited"\nrate_per_hour = 7\n')
    monkeypatch.setenv("RESUMES_RATE_PER_DAY", "unlimited")
    given = load_settings(home=home)
    assert (given.rate_per_minute, given.rate_per_hour, given.rate_per_day) == (0, 7, 0)
    for refused in ("-1", "1000001", "many"):
        monkeypatch.setenv("RESUMES_RATE_PER_DAY", refused)
        with pytest.raises(InvalidArgument, match=f'Invalid rate_per_day "{refused}"'):
            load_settings(home=home)


def test_a_bad_value_in_the_environment_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_PORT", "many")
    (home / "config.toml").write_text("port = 1\n")
    with pytest.raises(InvalidArgument) as refused:
        load_settings(home=home)
    assert refused.value.message == (
        'Invalid port "many" in RESUMES_PORT: use a whole number from 0 to 65535'
    )


@pytest.mark.parametrize(
    ("line", "way_on"),
    [
        ('port = "x"', "a whole number from 0 to 65535"),
        ("workers = 0", "a whole number from 1 to 64"),
        ("done_keep_days = 1.5", "a whole number from 0 to 36500"),
        ('disk_floor_bytes = "1 GB"', "a whole number from 0 to 4611686018427387904"),
        ("rate_per_day = -1", "a whole number from 0 to 1000000 or `unlimited`"),
        ('settle_s = "soon"', "a number from 0 to 3600"),
        ("scan_s = 0", "a number from 0.1 to 3600"),
        ('poll = "often"', "true or false"),
        ('rate_limit = "on?"', "true or false"),
        ('log_format = "xml"', "one of text, json"),
        ("host = 1", "a string"),
        ("extra_section_types = 7", "a list of at most 100 names of 1 to 100 printable characters"),
        ('keymap = ["d"]', "a table of strings"),
    ],
)
def test_what_a_setting_can_be_is_said_in_plain_words(home: Path, line: str, way_on: str) -> None:
    (home / "config.toml").write_text(f"{line}\n")
    with pytest.raises(InvalidArgument) as refused:
        load_settings(home=home)
    assert refused.value.message.endswith(f" in {home / 'config.toml'}: use {way_on}")


def test_a_flag_that_cannot_be_used_is_no_fault_of_the_file(home: Path) -> None:
    (home / "config.toml").write_text("workers = 2\n")
    with pytest.raises(InvalidArgument) as refused:
        load_settings(home=home, workers=65)
    assert refused.value.message == 'Invalid workers "65": use a whole number from 1 to 64'


def test_every_setting_has_a_sentence() -> None:
    source = (Path(__file__).parents[2] / "src/resumes/settings.py").read_text()
    for name in Settings.model_fields:
        after = source.split(f"\n    {name}: ")[1].splitlines()[1]
        assert after.strip().startswith('"""'), name


def test_a_setting_in_the_environment_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_DEBUG", "1")
    monkeypatch.setenv("RESUMES_IMPORT_DONE", "3")
    load_settings(home=tmp_path)
    monkeypatch.setenv("RESUMES_ACESS_LOG", "1")
    with pytest.raises(InvalidArgument, match="Unknown setting RESUMES_ACESS_LOG"):
        load_settings(home=tmp_path)


def test_keys_are_a_table_with_or_without_quotes(home: Path) -> None:
    (home / "config.toml").write_text(
        'theme = "light"\n[keymap]\n"resumes.delete" = "d,f8"\nkeys.create = "c"\n'
    )
    given = load_settings(home=home)
    assert given.theme is Theme.LIGHT
    assert given.keymap == {"resumes.delete": "d,f8", "keys.create": "c"}


def test_keys_in_the_environment_are_json(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "config.toml").write_text('[keymap]\n"resumes.delete" = "d,f8"\n')
    monkeypatch.setenv("RESUMES_KEYMAP", '{"keys.create": "c"}')
    assert load_settings(home=home).keymap == {"keys.create": "c"}
    for refused in ("keys.create=c", '["c"]', '{"keys.create": 3}'):
        monkeypatch.setenv("RESUMES_KEYMAP", refused)
        with pytest.raises(InvalidArgument, match="Invalid keymap"):
            load_settings(home=home)
