"""Where a store is, and what may be shown of that."""

from pathlib import Path

import pytest

from resumes.errors import InvalidArgument
from resumes.store.addresses import (
    PostgresAddress,
    SqliteAddress,
    find_without_secrets,
    parse_address,
)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:////srv/resumes.db", "/srv/resumes.db"),
        ("sqlite+pysqlite:////srv/resumes.db", "/srv/resumes.db"),
        ("sqlite:////srv/ü b?c.db", "/srv/ü b?c.db"),
    ],
)
def test_a_file_is_named_by_its_path(url: str, path: str) -> None:
    assert parse_address(url) == SqliteAddress(Path(path))


def test_a_file_may_be_named_from_where_one_stands() -> None:
    assert parse_address("sqlite:///r.db") == SqliteAddress(Path.cwd() / "r.db")


def test_a_file_is_where_links_lead(tmp_path: Path) -> None:
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "r.db").symlink_to(tmp_path / "disk" / "resumes.db")
    found = parse_address(f"sqlite:///{tmp_path}/folder/r.db")
    assert found == SqliteAddress(tmp_path / "disk" / "resumes.db")


def test_links_that_lead_to_one_another_name_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.db").symlink_to("b.db")
    (tmp_path / "b.db").symlink_to("a.db")
    found = parse_address(f"sqlite:///{tmp_path}/a.db")
    assert isinstance(found, SqliteAddress)
    assert not found.path.exists()


def test_a_path_with_a_nul_byte_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="NUL"):
        parse_address("sqlite:////srv/\0.db")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_the_way_to_a_server_is_not_the_addresss_to_say(scheme: str) -> None:
    assert parse_address(f"{scheme}://ana@host/db") == PostgresAddress("postgresql://ana@host/db")


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("postgresql://ana:hidden@host:5432/db", "postgresql://host:5432/db"),
        ("postgresql://ana:hidden@a:1,b:2/db?sslmode=verify-full", "postgresql://a:1,b:2/db"),
        ("postgresql://host/db?user=ana&password=hidden", "postgresql://host/db"),
        ("postgresql:///db?host=a&host=b&password=hidden", "postgresql:///db"),
    ],
)
def test_what_people_are_shown_holds_no_secret(url: str, label: str) -> None:
    address = parse_address(url)
    assert isinstance(address, PostgresAddress)
    assert address.label == label
    assert "hidden" not in repr(address)
    assert address.url == url


def test_a_name_may_be_given_in_any_way_that_libpq_knows() -> None:
    assert parse_address("postgresql://host?dbname=db") == PostgresAddress(
        "postgresql://host?dbname=db"
    )


@pytest.mark.parametrize(
    "url",
    [
        "",
        "resumes.db",
        "sqlite://",
        "sqlite:///",
        "mysql://ana:hidden@host/db",
        "postgresql://u:hidden@host",
    ],
)
def test_anything_else_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(InvalidArgument, match="postgresql://USER@HOST/NAME") as told:
        parse_address(url)
    assert "hidden" not in told.value.message


@pytest.mark.parametrize(
    ("url", "label", "shown"),
    [
        ("postgresql://h/db", "h/db", "h/db"),
        ("postgres://h:1/db", "h:1/db", "h:1/db"),
        ("postgresql+psycopg://u@h/db", "h/db", "u@h/db"),
        ("postgresql://u:secret@h/db", "h/db", "u@h/db"),
        ("postgresql://u:se?cret@h/db", "h/db", "u@h/db"),
        ("postgresql://u:se#cret@h/db", "h/db", "u@h/db"),
        ("postgresql://u:s%40%2F@a:1,b:2/db", "a:1,b:2/db", "u@a:1,b:2/db"),
        ("postgresql://:secret@h/db", "h/db", "h/db"),
        (
            "postgresql://u@/db?host=a&password=secret&sslmode=require&pass%77ord=secret",
            "/db",
            "u@/db?host=a&sslmode=require",
        ),
        ("postgresql://h?dbname=db&sslpassword=secret", "h", "h?dbname=db"),
    ],
)
def test_no_secret_of_a_server_s_address_is_shown(url: str, label: str, shown: str) -> None:
    address = parse_address(url)

    assert isinstance(address, PostgresAddress)
    assert address.label == f"postgresql://{label}"
    assert address.without_secrets == find_without_secrets(url) == f"postgresql://{shown}"
    assert repr(address) == f"PostgresAddress(postgresql://{label})"
    assert find_without_secrets(address.without_secrets) == address.without_secrets


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:sec@ret@h/db",
        "postgresql://u:sec/ret@h/db",
        "postgresql://u:sec/r?et@h/db",
        "postgresql://u:sec/r?e=t@h/db",
        "postgresql://u:sec%ret@h/db",
        "postgresql://u:sec%00ret@h/db",
        "postgresql://u:secret@h",
        "postgresql://u:secret@h/",
        "mysql://u:secret@h/db",
        "postgresql:/u:secret@h/db",
        "host=h user=u password=secret",
        "password=secret://",
    ],
)
def test_a_refusal_repeats_no_password(url: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        parse_address(url)

    assert not any(part in refusal.value.message for part in ("sec", "ret@", "secret"))
    assert find_without_secrets(url) is None


def test_a_file_is_shown_as_it_is() -> None:
    assert find_without_secrets("sqlite:////x.db") == "sqlite:////x.db"
