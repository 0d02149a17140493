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
def test_a_file_is_named_by_its_path_and_shown_as_it_is(url: str, path: str) -> None:
    assert parse_address(url) == SqliteAddress(Path(path))
    assert parse_address("sqlite:///r.db") == SqliteAddress(Path.cwd() / "r.db")
    assert find_without_secrets(url) == url


def test_a_file_is_where_links_lead(tmp_path: Path) -> None:
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "r.db").symlink_to(tmp_path / "disk" / "resumes.db")
    found = parse_address(f"sqlite:///{tmp_path}/folder/r.db")
    assert found == SqliteAddress(tmp_path / "disk" / "resumes.db")
    (tmp_path / "a.db").symlink_to("b.db")
    (tmp_path / "b.db").symlink_to("a.db")
    in_a_circle = parse_address(f"sqlite:///{tmp_path}/a.db")
    assert isinstance(in_a_circle, SqliteAddress)
    assert not in_a_circle.path.exists()


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_the_way_to_a_server_is_not_the_addresss_to_say(scheme: str) -> None:
    assert parse_address(f"{scheme}://ana@host/db") == PostgresAddress("postgresql://ana@host/db")


@pytest.mark.parametrize(
    ("url", "label", "shown"),
    [
        ("postgresql://h/db", "h/db", "h/db"),
        ("postgres://h:1/db", "h:1/db", "h:1/db"),
        ("postgresql+psycopg://u@h/db", "h/db", "u@h/db"),
        ("postgresql://u:secret@h:5432/db", "h:5432/db", "u@h:5432/db"),
        ("postgresql://u:se?cret@h/db", "h/db", "u@h/db"),
        ("postgresql://u:se#cret@h/db", "h/db", "u@h/db"),
        (
            "postgresql://u:s%40%2F@a:1,b:2/db?sslmode=require",
            "a:1,b:2/db",
            "u@a:1,b:2/db?sslmode=require",
        ),
        ("postgresql://:secret@h/db", "h/db", "h/db"),
        ("postgresql://h/db?user=u&password=secret", "h/db", "h/db?user=u"),
        (
            "postgresql://u@/db?host=a&host=b&password=secret&sslmode=require&pass%77ord=secret",
            "/db",
            "u@/db?host=a&host=b&sslmode=require",
        ),
        ("postgresql://h?dbname=db&sslpassword=secret", "h", "h?dbname=db"),
    ],
)
def test_no_secret_of_a_server_s_address_is_shown(url: str, label: str, shown: str) -> None:
    address = parse_address(url)

    assert isinstance(address, PostgresAddress)
    assert address.url.partition("://")[2] == url.partition("://")[2]
    assert address.label == f"postgresql://{label}"
    assert address.without_secrets == find_without_secrets(url) == f"postgresql://{shown}"
    assert address.url not in repr(address)
    assert find_without_secrets(address.without_secrets) == address.without_secrets


@pytest.mark.parametrize(
    "url",
    [
        "", "resumes.db", "sqlite://", "sqlite:///", "sqlite:////srv/\0.db",
        "postgresql://u:sec@ret@h/db", "postgresql://u:sec/ret@h/db",
        "postgresql://u:sec/r?et@h/db", "postgresql://u:sec/r?e=t@h/db",
        "postgresql://u:sec%ret@h/db", "postgresql://u:sec%00ret@h/db",
        "postgresql://u:secret@h", "postgresql://u:secret@h/", "mysql://u:secret@h/db",
        "postgresql:/u:secret@h/db", "host=h user=u password=secret", "password=secret://",
    ],
)  # fmt: skip
def test_anything_else_is_refused_without_repeating_a_password(url: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        parse_address(url)
    assert not any(part in refusal.value.message for part in ("sec", "ret@", "secret"))
    told = ("NUL", "postgresql://USER@HOST/NAME", "write %40 for @")
    assert any(part in refusal.value.message for part in told)
    if not url.startswith("sqlite"):
        assert find_without_secrets(url) is None
