"""What there was to say about a resume that is stored by now."""

import orjson

from resumes.analyzer.sections import Format
from resumes.analyzer.service_fields import take_out
from resumes.analyzer.validation import validate
from resumes.errors import Issue


def stored_warnings(document: str | bytes) -> tuple[Issue, ...]:
    """The warnings about a stored document, but for those about what the service sets itself.

    At most 50, in document order, and then one that counts the rest. Section types that were
    admitted when it was stored are taken as admitted.
    """
    stored = take_out(orjson.loads(document))
    accepted = Format(extra_section_types=frozenset(stored["sections"]))
    return validate(stored, accepted).all_warnings()
