"""Settings: one frozen object, created once by the command line and passed down.

A flag comes before the environment (`RESUMES_…`), that before `config.toml` in the home, and that
before the default. The file is flat TOML with the names below, except for the table of keys.
"""

import errno
import json
import os
import shlex
import stat
import tomllib
from collections.abc import Iterator, Mapping
from enum import EnumType, StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from resumes.analyzer import Format
from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.text import is_harmless

CONFIG_NAME = "config.toml"
ENV_PREFIX = "RESUMES_"
MAX_CONFIG_BYTES = 32 * 1024
MAX_SHOWN_CHARS = 80
"""How much of a value or name a message repeats."""

ANALYZED_FILE: Final = "{file}"
"""Stands for the file's path in the arguments of the analyzer."""

NO_SETTINGS = ("debug", "import_")
"""Beginnings of our variables that are not settings: for debugging, and for the command `on_import`."""


class LogFormat(StrEnum):
    """The format of the lines of a service's log."""

    TEXT = "text"
    JSON = "json"


class Theme(StrEnum):
    """The colors of the terminal UI; `terminal` are those that the terminal itself is set to."""

    DARK = "dark"
    LIGHT = "light"
    TERMINAL = "terminal"
    TERMINAL_LIGHT = "terminal-light"


def _without_nul(value: str) -> str:
    # A name is looked up and a command run as C strings, which would end there.
    if "\0" in value:
        raise ValueError("remove the character U+0000")
    return value


_Text = Annotated[str, AfterValidator(_without_nul)]


def _with_file(command: tuple[str, ...]) -> tuple[str, ...]:
    if command and (not command[0] or not any(ANALYZED_FILE in argument for argument in command)):
        raise ValueError(_usable("analyzer"))
    return command


def _harmless(name: str) -> str:
    # Messages and reports name the sections that are admitted.
    if not is_harmless(name):
        raise ValueError(_usable("extra_section_types"))
    return name


_SectionTypes = frozenset[
    Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=100),
        AfterValidator(_harmless),
    ]
]

_Rate = Annotated[
    int,
    Field(ge=0, le=1_000_000),
    BeforeValidator(lambda value: 0 if value == "unlimited" else value),
]
"""A number of requests; 0 is any number."""


def _default_home() -> Path:
    """Return the user's own home. Raises StoreUnavailable for a user who has no folder for it."""
    try:
        return Path(platformdirs.user_data_path("resumes"))
    except (
        RuntimeError
    ):  # neither HOME nor an entry in the password database, as in some containers
        raise StoreUnavailable(
            f"No home: HOME is not an absolute path, and user {os.getuid()} has no home directory. "
            f"Set {ENV_PREFIX}HOME, or use --home"
        ) from None


class Settings(BaseModel):
    """All settings of all commands. A sentence below each says what it does."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path = Field(default_factory=_default_home)
    """The folder that holds the store, the inbox and the configuration file."""

    database: _Text | None = Field(default=None, repr=False)
    """The store's address: `sqlite:///PATH`, by default `resumes.db` in the home, or
    `postgresql://USER@HOST/NAME`. It may contain a password, so it is never shown."""

    account: _Text | None = None
    """The account that commands use without `--account`, and that the terminal UI shows first."""

    host: _Text = "127.0.0.1"
    """The address that the API listens on. Beyond loopback, put TLS in front of it."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """The port that the API listens on; 0 picks a free one."""

    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """API processes. Reads scale with them; SQLite has one writer at a time."""

    renderers: Annotated[int | None, Field(ge=1, le=16)] = None
    """Processes in which an export draws PDFs and Word documents; each takes about 100 MB. By default as
    many as processors, at most 4."""

    rate_limit: bool | None = None
    """Whether requests are limited per key. By default only when listening beyond loopback."""

    rate_per_minute: _Rate = 60
    """Requests per key and minute; 0 or `unlimited`: no limit."""

    rate_per_hour: _Rate = 1_000
    """The same, per hour."""

    rate_per_day: _Rate = 10_000
    """The same, per day."""

    max_body_bytes: Annotated[int, Field(ge=1_024, le=64 * 1024 * 1024)] = 2 * 1024 * 1024
    """The largest resume, in bytes, over HTTP and in files."""

    max_connections: Annotated[int, Field(ge=1, le=1_000_000)] = 1_000
    """Maximum open connections per process of the API; the limit on open files may lower it."""

    client_timeout_s: Annotated[float, Field(ge=0.1, le=3_600)] = 10.0
    """Timeout in seconds for TLS handshakes, for request headers, and for stalled uploads and
    downloads."""

    pdf: bool = True
    """Whether the API serves resumes as PDF."""

    pdf_timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0
    """Timeout in seconds for drawing one PDF over the API."""

    log_format: LogFormat = LogFormat.TEXT
    """Log format of `serve`, `watch` and `up`: lines of text or JSON."""

    access_log: bool | None = None
    """Whether the API logs a line for each request. By default only if the log is JSON."""

    max_file_bytes: Annotated[int, Field(ge=1_024, le=1024 * 1024 * 1024)] = 64 * 1024 * 1024
    """The maximum size of a bundle (a file with several resumes), uncompressed, in bytes."""

    extra_section_types: Annotated[_SectionTypes, Field(max_length=100)] = frozenset()
    """Additional section types to accept unchanged; comma-separated in the environment."""

    first_month: Annotated[int | None, Field(ge=0, le=1)] = None
    """The number of January in the analyzer's dates, 0 or 1. By default, a month 12 tells that it is 1."""

    settle_s: Annotated[float, Field(ge=0, le=3_600)] = 5.0
    """Seconds a file must be unchanged before it is checked; a complete, valid resume does not wait."""

    poll: bool = False
    """Whether new files are found only by scanning: network drives do not report changes."""

    done_keep_days: Annotated[int | None, Field(ge=0, le=36_500)] = None
    """Days after which imported files are deleted; 0 keeps only today's. By default they are kept."""

    on_import: _Text | None = None
    """A shell command to run after each batch of files. By default, or if empty, none."""

    analyzer: Annotated[tuple[_Text, ...], Field(max_length=100), AfterValidator(_with_file)] = ()
    """The command that turns a PDF or Word file into a resume: a list with `{file}` in place of the
    file's path. JSON, or words as in a shell, in the environment. By default, or if empty, none."""

    analyzer_timeout_s: Annotated[float, Field(gt=0, le=3_600)] = 120.0
    """Timeout in seconds for the analyzer on one file."""

    analyzers: Annotated[int, Field(ge=1, le=64)] = 1
    """How many files each process gives to the analyzer at once."""

    theme: Theme = Theme.DARK
    """The theme of the terminal UI. NO_COLOR in the environment disables color."""

    keymap: Mapping[str, str] = Field(default_factory=dict)
    """Custom keys of the terminal UI, by action; JSON in the environment."""

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_bool(cls, value: Any, info: ValidationInfo) -> Any:
        # Of TOML: to pydantic `true` is 1.
        assert info.field_name is not None
        if isinstance(value, bool) and bool not in _kinds(info.field_name):
            raise ValueError(_usable(info.field_name))
        return value

    @field_validator("extra_section_types", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if isinstance(value, str):
            return [name for name in value.split(",") if name.strip()]
        return value

    @field_validator("analyzer", mode="before")
    @classmethod
    def _split_command(cls, value: Any) -> Any:
        if isinstance(value, str):
            try:
                return json.loads(value) if value.startswith("[") else shlex.split(value)
            except (ValueError, RecursionError):
                raise ValueError(_usable("analyzer")) from None
        return value

    @field_validator("keymap", mode="before")
    @classmethod
    def _parse(cls, value: Any) -> Any:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                raise ValueError('use JSON, such as {"resumes.delete": "d,f8"}') from None
        try:
            return dict(_flat(value)) if isinstance(value, Mapping) else value
        except RecursionError:
            raise ValueError(_usable("keymap")) from None

    @property
    def database_url(self) -> str:
        """Return the store's address."""
        if self.database is not None:
            return self.database
        return f"sqlite:///{self.home.absolute() / 'resumes.db'}"

    @property
    def inbox(self) -> Path:
        """Return the folder that `up` and `demo` watch."""
        return self.home / "inbox"

    @property
    def format(self) -> Format:
        """Return the analyzer format by these settings."""
        return Format(self.extra_section_types, self.max_body_bytes, self.first_month)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield `resumes.delete` both for the key `"resumes.delete"` and for a table `resumes`."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def load_settings(**flags: Any) -> Settings:
    """Return the settings in force. A flag that is None was not given.

    Raises InvalidArgument for a file that cannot be read and for a value that cannot be used,
    saying where it comes from as far as that is known; StoreUnavailable for a user without a home.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    variables = _find_variables()
    environment = {name: os.environ[variable] for name, variable in variables.items()}
    file = None
    try:
        file = Settings(**environment | given).home / CONFIG_NAME
        values = _load_file(file)
        for name in values:
            if name not in Settings.model_fields:
                raise _unknown(name, f'"{_shown(name)}" in {file}')
        if "home" in values:
            raise InvalidArgument(
                f'Invalid home "{_shown(values["home"])}" in {file}: the home is always '
                f"the folder with this file. Use --home or {ENV_PREFIX}HOME, and remove the line"
            )
        return Settings(**values | environment | given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        origin = None if name in given else variables.get(name, file)
        value = "…" if name == "database" else _shown(first["input"])
        is_our_sentence = first["type"] == "value_error"
        remedy = first["msg"].removeprefix("Value error, ") if is_our_sentence else _usable(name)
        where = "" if origin is None else f" in {origin}"
        raise InvalidArgument(f'Invalid {name} "{value}"{where}: {remedy}') from None


GONE: Final = {
    "body_memory_bytes": "an API process holds up to 64 MiB of bodies",
    "disk_floor_bytes": "64 MiB stay free on each disk",
    "scan_s": "folders are scanned every 2 seconds",
}
"""Settings of earlier releases, and the behavior that replaces them."""


def _unknown(name: str, where: str) -> InvalidArgument:
    if name in GONE:
        return InvalidArgument(f"The setting {where} is gone: {GONE[name]}. Remove it")
    return InvalidArgument(f"Unknown setting {where}. docs/settings.md lists all settings")


def _find_variables() -> dict[str, str]:
    """Return the variables of the environment that are settings and not empty, by their settings.

    Raises InvalidArgument for what looks like a setting and is none: if it was ignored, a limit or a
    path would silently not hold.
    """
    variables: dict[str, str] = {}
    for variable, value in os.environ.items():
        prefix, name = variable[: len(ENV_PREFIX)], variable[len(ENV_PREFIX) :].lower()
        if prefix.upper() != ENV_PREFIX:
            continue
        if name in Settings.model_fields:
            if value:
                variables.setdefault(name, variable)
        elif prefix == ENV_PREFIX and not name.startswith(NO_SETTINGS):
            raise _unknown(name, f"{_shown(variable)} in the environment")
    return variables


def _load_file(path: Path) -> dict[str, Any]:
    """Return the settings in the file, without waiting for the writer of a FIFO; empty if there is no file."""
    problem, content = "Cannot read the configuration", None
    try:
        if stat.S_ISREG(path.stat().st_mode):
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                content = file.read(MAX_CONFIG_BYTES + 1)
        if content is None:  # a non-blocking read of a file of /proc may return that, too
            why = "not a regular file. Replace it with one, or remove it"
        else:
            problem = "Invalid configuration"
            why = f"larger than {MAX_CONFIG_BYTES} bytes. Shorten it"
            if len(content) <= MAX_CONFIG_BYTES:
                return tomllib.loads(content.decode())
    except FileNotFoundError:
        if not path.is_symlink():
            return {}
        why = "the link is broken. Create its target, or remove it"
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            why = f'Invalid home "{_shown(path.parent)}": {error.strerror}. Use a shorter one'
            raise InvalidArgument(why) from None
        why = f"{error.strerror}"
    except UnicodeDecodeError as error:
        why = f"byte {error.start} is not UTF-8. Save it as UTF-8"
    except tomllib.TOMLDecodeError as error:
        why = str(error)[:200]
    except ValueError:
        why = "a number has too many digits"
    except RecursionError:
        why = "it is nested too deeply"
    raise InvalidArgument(f"{problem} {path}: {why}")


def _shown(value: object) -> str:
    try:
        return str(value)[:MAX_SHOWN_CHARS]
    except (ValueError, RecursionError):  # a number of too many digits, lists in lists
        return "…"


def _usable(name: str) -> str:
    """Return a sentence about the valid values of the setting."""
    field, kinds = Settings.model_fields[name], _kinds(name)
    if bool in kinds:
        return "use true or false"
    if int in kinds or float in kinds:
        minimum, maximum = (
            next((getattr(limit, bound) for limit in field.metadata if hasattr(limit, bound)), None)
            for bound in ("ge", "le")
        )
        number = "a whole number" if int in kinds else "a number"
        lower = "above 0, at most" if minimum is None else f"from {minimum} to"
        unlimited = " or `unlimited`" if name.startswith("rate_per_") else ""
        return f"use {number} {lower} {maximum}{unlimited}"
    if isinstance(field.annotation, EnumType):
        return f"use one of {', '.join(map(str, field.annotation.__members__.values()))}"
    if tuple in kinds:
        return f'use a list of strings with {ANALYZED_FILE}, such as ["/usr/local/bin/analyze", "{ANALYZED_FILE}"]'
    if frozenset in kinds:
        return "use a list of at most 100 names of 1 to 100 printable characters"
    return "use a table of strings" if Mapping in kinds else "use a string"


def _kinds(name: str) -> tuple[Any, ...]:
    kind = Settings.model_fields[name].annotation
    return (kind, get_origin(kind), *get_args(kind))
