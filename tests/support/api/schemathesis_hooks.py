"""What schemathesis is told of the service that its OpenAPI document cannot say."""

import itertools
from contextlib import suppress
from typing import Any

import schemathesis
from schemathesis import Case, HookContext

from resumes.analyzer.strict_json import is_faithful
from resumes.errors import InvalidArgument
from resumes.search.query import parse_query
from resumes.store.labels import check_label

KEY = "Idempotency-Key"
NUMBERS = itertools.count()


@schemathesis.hook
def filter_body(context: HookContext, body: Any) -> bool:
    """Only JSON that can be kept: for JSON Schema a whole number is one however large, and however
    it is written (docs/format.md)."""
    return is_faithful(body)


@schemathesis.hook
def filter_query(context: HookContext, query: Any) -> bool:
    """Only searches for words, and labels of characters that can be printed, of which a schema knows
    nothing (docs/finding.md)."""
    text, label = map(query.get, ("q", "label")) if isinstance(query, dict) else (None, None)
    with suppress(InvalidArgument):
        if isinstance(label, str):
            check_label(label)
        search = parse_query(text) if isinstance(text, str) else None
        return search is None or (bool(search.terms) and not search.is_cut)
    return False


@schemathesis.hook
def before_call(context: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
    """No create is taken for a repetition: it would get the answer of the first (docs/api.md)."""
    is_valid = case.meta is not None and case.meta.generation.mode.is_positive
    if is_valid and KEY in case.headers:
        case.headers[KEY] = f"{case.headers[KEY][:240]}{next(NUMBERS)}"
