"""Load the settings as one frozen object, which the command line creates once and passes on.

Flags take precedence over the environment (`RESUMES_…`), then `config.toml` in the home, then the
defaults. The file is flat TOML with the names below, except for the table of keys.
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
"""The number of characters of a value or name that a message repeats."""

ANALYZED_FILE: Final = "{file}"
"""The placeholder for the file's path in the arguments of the analyzer."""

NO_SETTINGS = ("debug", "import_")
"""The prefixes, after ENV_PREFIX, of variables that are not settings: they are for debugging, or
for the command `on_import`."""


class LogFormat(StrEnum):
    """The format of the lines in a service's log."""

    TEXT = "text"
    JSON = "json"


class Theme(StrEnum):
    """The colors of the terminal UI. `terminal` uses the terminal's own colors."""

    DARK = "dark"
    LIGHT = "light"
    TERMINAL = "terminal"
    TERMINAL_LIGHT = "terminal-light"


def _without_nul(value: str) -> str:
    # Names and commands are passed to the system as C strings, which end at this character.
    if "\0" in value:
        raise ValueError("remove the character U+0000")
    return value


_Text = Annotated[str, AfterValidator(_without_nul)]


def _with_file(command: tuple[str, ...]) -> tuple[str, ...]:
    if command and (not command[0] or not any(ANALYZED_FILE in argument for argument in command)):
        raise ValueError(_usable("analyzer"))
    return command


def _harmless(name: str) -> str:
    # Messages and reports contain the names of section types.
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
"""A number of requests; 0 means no limit."""


def _default_home() -> Path:
    """Return the user's default home. Raises StoreUnavailable if the user has no home directory."""
    try:
        return Path(platformdirs.user_data_path("resumes"))
    except (
        RuntimeError
    ):  # HOME and the entry in the password database are missing in some containers
        raise StoreUnavailable(
            f"No home: HOME is not an absolute path, and user {os.getuid()} has no home directory. "
            f"Set {ENV_PREFIX}HOME, or use --home"
        ) from None


class Settings(BaseModel):
    """The settings of all commands."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path = Field(default_factory=_default_home)
    """The folder that contains the store, the inbox and the configuration file."""

    database: _Text | None = Field(default=None, repr=False)
    """The store's address, `sqlite:///PATH` or `postgresql://USER@HOST/NAME`. The default is
    `resumes.db` in the home. The address can contain a password, so it is never shown."""

    account: _Text | None = None
    """The account that commands use without `--account`, and that the terminal UI shows first."""

    host: _Text = "127.0.0.1"
    """The address that the API listens on. If it is not loopback, use a proxy with TLS."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """The port that the API listens on; 0 means any free port."""

    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """The number of API processes. Reads scale with it; SQLite allows only one writer at a time."""

    renderers: Annotated[int | None, Field(ge=1, le=16)] = None
    """The number of processes, of about 100 MB each, in which an export renders PDFs and Word
    documents. By default, there is one per processor, but at most 4."""

    rate_limit: bool | None = None
    """Whether requests are limited per key. By default, they are limited except on loopback."""

    rate_per_minute: _Rate = 60
    """The maximum number of requests per key and minute; 0 or `unlimited` means no limit."""

    rate_per_hour: _Rate = 1_000
    """The same as `rate_per_minute`, but per hour."""

    rate_per_day: _Rate = 10_000
    """The same as `rate_per_minute`, but per day."""

    max_body_bytes: Annotated[int, Field(ge=1_024, le=64 * 1024 * 1024)] = 2 * 1024 * 1024
    """The maximum size of a resume, over HTTP and in files."""

    max_connections: Annotated[int, Field(ge=1, le=1_000_000)] = 1_000
    """The maximum number of open connections per API process; the open files limit may lower it."""

    client_timeout_s: Annotated[float, Field(ge=0.1, le=3_600)] = 10.0
    """The timeout for TLS handshakes, request headers, stalled uploads and stalled downloads."""

    pdf: bool = True
    """Whether the API can return resumes as PDFs and Word documents."""

    pdf_timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0
    """The timeout for rendering one PDF or Word document over the API."""

    log_format: LogFormat = LogFormat.TEXT
    """The log format of `serve`, `watch` and `up`."""

    access_log: bool | None = None
    """Whether the API logs each request. By default, it does so only if the log is JSON."""

    max_file_bytes: Annotated[int, Field(ge=1_024, le=1024 * 1024 * 1024)] = 64 * 1024 * 1024
    """The maximum uncompressed size of a bundle (a file with several resumes)."""

    extra_section_types: Annotated[_SectionTypes, Field(max_length=100)] = frozenset()
    """Additional section types to accept unchanged. In the environment, commas separate them."""

    first_month: Annotated[int | None, Field(ge=0, le=1)] = None
    """The analyzer's number for January, 0 or 1. By default, it is determined for each resume."""

    settle_s: Annotated[float, Field(ge=0, le=3_600)] = 5.0
    """The time that a file must be unchanged before it is checked. Valid resumes do not wait."""

    poll: bool = False
    """Whether new files are found only by scanning, since network drives do not report changes."""

    done_keep_days: Annotated[int | None, Field(ge=0, le=36_500)] = None
    """The number of days after which imported files are deleted; 0 keeps only today's files. By
    default, all are kept."""

    on_import: _Text | None = None
    """A shell command that runs after each batch of files. The default, or empty, is no command."""

    analyzer: Annotated[tuple[_Text, ...], Field(max_length=100), AfterValidator(_with_file)] = ()
    """The command that converts a PDF or Word file to a resume: a list with `{file}` for the path.
    In the environment, it is JSON or a shell command line. The default, or empty, is no command."""

    analyzer_timeout_s: Annotated[float, Field(gt=0, le=3_600)] = 120.0
    """The timeout for the analyzer on one file."""

    analyzers: Annotated[int, Field(ge=1, le=64)] = 1
    """The number of files that each process gives to the analyzer at the same time."""

    theme: Theme = Theme.DARK
    """The theme of the terminal UI. NO_COLOR in the environment disables color."""

    keymap: Mapping[str, str] = Field(default_factory=dict)
    """Custom keys of the terminal UI by action. In the environment, this is JSON."""

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_bool(cls, value: Any, info: ValidationInfo) -> Any:
        # Without this check, pydantic would accept `true` in TOML as 1.
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
        """Return the analyzer format that these settings define."""
        return Format(self.extra_section_types, self.max_body_bytes, self.first_month)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten a table, so that `"resumes.delete"` can also be `delete` in a table `resumes`."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def load_settings(**flags: Any) -> Settings:
    """Return the settings in effect. A flag that is None was not given.

    Raises InvalidArgument for a file that cannot be read or a value that cannot be used, with the
    origin of the value if it is known, and StoreUnavailable for a user without a home.
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
"""Settings of earlier releases, each with the behavior that replaces it."""


def _unknown(name: str, where: str) -> InvalidArgument:
    if name in GONE:
        return InvalidArgument(f"The setting {where} is gone: {GONE[name]}. Remove it")
    return InvalidArgument(f"Unknown setting {where}. docs/settings.md lists all settings")


def _find_variables() -> dict[str, str]:
    """Return the nonempty environment variable for each setting that has one.

    Raises InvalidArgument for a variable that looks like a setting but is none: if it was ignored,
    the user would not notice that a limit or path has no effect.
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
    """Return the settings in the file, or none without a file. Do not wait for a FIFO's writer."""
    problem, content = "Cannot read the configuration", None
    try:
        if stat.S_ISREG(path.stat().st_mode):
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                content = file.read(MAX_CONFIG_BYTES + 1)
        if content is None:  # a non-blocking read of a file in /proc may also return None
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
    except (ValueError, RecursionError):  # a number with too many digits, or nested lists
        return "…"


def _usable(name: str) -> str:
    """Return a sentence that describes the valid values of the setting."""
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
