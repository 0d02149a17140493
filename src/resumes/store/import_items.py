"""Summary of the resumes in an imported file that held several: counts, and the first problems.

The ledger has it as JSON text beside the file's own outcome. It is for people to read; what
recovery asks is the ledger's items, one row for each.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

MAX_PROBLEMS = 50
"""How many problems of a file are stored."""

Count = Annotated[int, Field(ge=0, lt=2**63)]
STRICT: Final = ConfigDict(strict=True, alias_generator=to_camel, defer_build=True)


@dataclass(frozen=True, slots=True)
class Problem:
    """A resume of the file that is not done: its number in the file, and `place`, where for people.

    `path` and `byte_offset` are None where not known.
    """

    __pydantic_config__: ClassVar = STRICT
    item: Count
    place: str
    outcome: Annotated[str, Field(pattern="^(held|failed|duplicate)$")]
    reason: str | None = None
    message: str | None = None
    path: str | None = None
    byte_offset: Count | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the problem as the ledger stores it."""
        fields: dict[str, Any] = PROBLEM.dump_python(self, mode="json", by_alias=True)
        return fields


@dataclass(frozen=True, slots=True)
class Items:
    """How many resumes a file held, the number of each outcome, and at most 50 problems, in order."""

    __pydantic_config__: ClassVar = STRICT
    total: Count
    done: Count
    duplicate: Count
    held: Count
    failed: Count
    problems: tuple[Problem, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the counts and problems as the ledger stores them."""
        fields: dict[str, Any] = ITEMS.dump_python(self, mode="json", by_alias=True)
        return fields | {"problems": fields["problems"][:MAX_PROBLEMS]}


PROBLEM: Final = TypeAdapter(Problem)
ITEMS: Final = TypeAdapter(Items)


def parse_items(text: str) -> Items:
    """Return what `as_json` wrote, from its JSON text. Raises ValueError for anything else."""
    try:
        return ITEMS.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}") from None
