"""Settings: one frozen object, built once by the command line and passed down.

Precedence, everywhere the same: flag, environment (`RESUMES_…`), `config.toml` in the home,
default. The file is flat TOML with the names below, but for the table of keys.
"""

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from enum import EnumType, StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import platformdirs
from pydantic import BeforeValidator, Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from resumes.analyzer import Format
from resumes.errors import InvalidArgument
from resumes.text import number_words

CONFIG_NAME = "config.toml"
ENV_PREFIX = "RESUMES_"
MOST_SHOWN = 80
"""Characters of a value that a message repeats."""

NO_SETTINGS = ("debug", "import_")
"""What the environment may hold of ours that is no setting: a switch for us, and what a command
after an import is told."""


class LogFormat(StrEnum):
    """What the lines of a service's log look like."""

    TEXT = "text"
    JSON = "json"


class Theme(StrEnum):
    """The colours of the terminal UI; `terminal` are those that the terminal itself is set to."""

    DARK = "dark"
    LIGHT = "light"
    TERMINAL = "terminal"
    TERMINAL_LIGHT = "terminal-light"


def _zero_if_unlimited(value: Any) -> Any:
    return 0 if value == "unlimited" else value


Rate = Annotated[int, Field(ge=0, le=1_000_000), BeforeValidator(_zero_if_unlimited)]
"""A number of requests; 0 is any number."""


class Settings(BaseSettings):
    """What can be set, for all commands. A sentence under each says what it does."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_ignore_empty=True, frozen=True, extra="forbid"
    )

    home: Path = Field(default_factory=lambda: Path(platformdirs.user_data_path("resumes")))
    """The folder that holds the store, the inbox and the configuration file."""

    database: str | None = Field(default=None, repr=False)
    """The store's address: `sqlite:///PATH`, by default `resumes.db` in the home, or
    `postgresql://USER@HOST/NAME`. It may hold a password, so it is repeated nowhere."""

    host: str = "127.0.0.1"
    """The address that the API listens on. Beyond loopback, put TLS in front of it."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """The port that the API listens on; 0 takes a free one."""

    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """API processes. Reads scale with them; writes share one lane."""

    rate_limit: bool | None = None
    """Whether requests are limited per key. By default only when listening beyond loopback."""

    rate_per_minute: Rate = 60
    """Requests of a key a minute, unless its plan says otherwise; 0 or `unlimited`: any number."""

    rate_per_hour: Rate = 1_000
    """Requests of a key an hour, likewise."""

    rate_per_day: Rate = 10_000
    """Requests of a key a day, likewise."""

    max_body_bytes: Annotated[int, Field(ge=1_024, le=64 * 1024 * 1024)] = 2 * 1024 * 1024
    """The largest resume, in bytes, over HTTP and in files alike."""

    max_connections: Annotated[int, Field(ge=1, le=1_000_000)] = 1_000
    """Connections that a process of the API, or of the terminal UI in a browser, holds at once; more
    are refused, as are more than its open files allow."""

    client_timeout_s: Annotated[float, Field(gt=0, le=3_600)] = 10.0
    """Seconds for the head of a request, and without progress in its body or in reading an answer."""

    body_memory_bytes: Annotated[int, Field(ge=1_048_576)] = 64 * 1024 * 1024
    """Bytes of request bodies that an API process holds at once; beyond, requests are refused."""

    disk_floor_bytes: Annotated[int, Field(ge=0)] = 64 * 1024 * 1024
    """Bytes that creates leave free on the store's disk; below, they are refused. 0 is no floor."""

    log_format: LogFormat = LogFormat.TEXT
    """How `serve`, `watch` and `up` log: lines of text, or of JSON."""

    access_log: bool | None = None
    """Whether the API logs a line for each request. By default when the log is JSON."""

    max_file_bytes: Annotated[int, Field(ge=1_024, le=1024 * 1024 * 1024)] = 64 * 1024 * 1024
    """The largest file of several resumes, inflated, in bytes."""

    extra_section_types: Annotated[frozenset[str], NoDecode] = frozenset()
    """Further section types to admit, as they are; in the environment separated by commas."""

    settle_s: Annotated[float, Field(ge=0, le=3_600)] = 5.0
    """Seconds a file must be quiet before it is judged, unless it is a whole valid resume."""

    scan_s: Annotated[float, Field(gt=0, le=3_600)] = 2.0
    """Seconds between scans of the watched folder; longer by itself when a scan takes long."""

    poll: bool = False
    """Whether new files are found by scans alone: network drives do not report changes."""

    done_keep_days: Annotated[int | None, Field(ge=0, le=36_500)] = None
    """Days after which done files are removed; 0 keeps today's. By default they stay for good."""

    on_import: str | None = None
    """A shell command to run after each batch of files. By default, and if empty, there is none."""

    theme: Theme = Theme.DARK
    """The colours that the terminal UI begins with. NO_COLOR in the environment takes them away."""

    keymap: Annotated[Mapping[str, str], NoDecode] = Field(default_factory=dict)
    """Keys of the terminal UI other than its own, by action; in the environment as JSON."""

    @field_validator("extra_section_types", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {name.strip() for name in value.split(",")} - {""}
        return value

    @field_validator("keymap", mode="before")
    @classmethod
    def _parse(cls, value: Any) -> Any:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                raise ValueError('use JSON, such as {"resumes.delete": "d,f8"}') from None
        return dict(_flat(value)) if isinstance(value, Mapping) else value

    @property
    def database_url(self) -> str:
        """The store's address."""
        return self.database or f"sqlite:///{self.home.absolute() / 'resumes.db'}"

    @property
    def inbox(self) -> Path:
        """The folder that `up` and `demo` watch."""
        return self.home / "inbox"

    @property
    def format(self) -> Format:
        """What the analyzer package needs to know of these settings."""
        return Format(extra_section_types=self.extra_section_types, max_bytes=self.max_body_bytes)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then the environment, then the file."""
        assert isinstance(init_settings, InitSettingsSource)
        file_values = init_settings.init_kwargs.pop("_file_values", {})
        return (init_settings, env_settings, InitSettingsSource(settings_cls, file_values))


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`resumes.delete` for both of TOML's readings of it: with quotes a key, without a table."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def load_settings(**flags: Any) -> Settings:
    """The settings in force. A flag that is None was not given.

    Raises InvalidArgument for a file that cannot be read and for a value that cannot be used,
    saying where it comes from as far as that is known.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    _refuse_unknown(os.environ)
    try:
        home = Settings(**given).home
    except ValidationError as error:
        raise _invalid(error, given) from None
    file_values = _load_file(home / CONFIG_NAME)
    try:
        return Settings(**given, _file_values=file_values)  # type: ignore[call-arg]  # read by the sources, no field
    except ValidationError as error:
        raise _invalid(error, given, file=home / CONFIG_NAME) from None


def _refuse_unknown(environment: Mapping[str, str]) -> None:
    """Raises InvalidArgument for what looks like a setting and is none: left out silently, a limit
    or a path would not hold."""
    for name in environment:
        setting = name.removeprefix(ENV_PREFIX).lower()
        if (
            name.startswith(ENV_PREFIX)
            and setting not in Settings.model_fields
            and not setting.startswith(NO_SETTINGS)
        ):
            raise InvalidArgument(
                f"Unknown setting {name} in the environment. README lists all settings"
            )


def _load_file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"Invalid configuration {path}: {error}") from None
    except OSError as error:
        raise InvalidArgument(f"Cannot read the configuration {path}: {error.strerror}") from None


def _invalid(
    error: ValidationError, flags: Mapping[str, Any], *, file: Path | None = None
) -> InvalidArgument:
    first = error.errors()[0]
    name = str(first["loc"][0])
    origin = None if name in flags else _find_variable(name) or file
    where = "" if origin is None else f" in {origin}"
    if first["type"] == "extra_forbidden":
        return InvalidArgument(f'Unknown setting "{name}"{where}. README lists all settings')
    value = "…" if name == "database" else str(first["input"])[:MOST_SHOWN]
    is_our_word = first["type"] == "value_error"
    way_on = first["msg"].removeprefix("Value error, ") if is_our_word else _usable(name)
    return InvalidArgument(f'Invalid {name} "{value}"{where}: {way_on}')


def _find_variable(name: str) -> str | None:
    """The variable of the environment that a setting comes from, if it comes from one."""
    wanted = f"{ENV_PREFIX}{name}".upper()
    return next((one for one, value in os.environ.items() if value and one.upper() == wanted), None)


def _usable(name: str) -> str:
    """What the setting can be."""
    field = Settings.model_fields[name]
    kinds = (field.annotation, get_origin(field.annotation), *get_args(field.annotation))
    if bool in kinds:
        return "use true or false"
    if int in kinds or float in kinds:
        unlimited = " or `unlimited`" if name.startswith("rate_per_") else ""
        return f"use {_range_words(field.metadata, is_whole=int in kinds)}{unlimited}"
    if isinstance(field.annotation, EnumType):
        return f"use one of {', '.join(map(str, field.annotation.__members__.values()))}"
    if frozenset in kinds:
        return "use a list of strings"
    return "use a table of strings" if Mapping in kinds else "use a string"


def _range_words(limits: Iterable[object], *, is_whole: bool) -> str:
    bounds = {
        bound: getattr(limit, bound)
        for limit in limits
        for bound in ("ge", "gt", "le")
        if hasattr(limit, bound)
    }
    above = bounds.get("gt")
    words = number_words(is_whole=is_whole, least=bounds.get("ge", above), most=bounds.get("le"))
    return words if above is None else f"{words}, but not {above:g}"
