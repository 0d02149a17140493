"""The limits of a plan as people read and type them."""

from collections.abc import Iterator
from typing import Final

from resumes.errors import InvalidArgument
from resumes.store.plans import MAX_REQUESTS, PlanInfo, Requests
from resumes.text import counted
from tui.screens.facts import Fact

UNLIMITED: Final = "unlimited"
DEFAULT: Final = "default"
"""How a rate is called that the settings give."""

MOST_DIGITS: Final = 18

WINDOWS: Final = {
    Requests.PER_MINUTE: "Per minute",
    Requests.PER_HOUR: "Per hour",
    Requests.PER_DAY: "Per day",
}


def maximum_text(maximum: int | None) -> str:
    """How many resumes an account may hold, in words that `parse_maximum` takes."""
    return UNLIMITED if maximum is None else f"{maximum:,}"


def rate_text(rate: int | None) -> str:
    """How many requests a key may make, in words that `parse_rate` takes."""
    if rate is None:
        return DEFAULT
    return f"{rate:,}" if rate else UNLIMITED


def listing_text(is_allowed: bool) -> str:
    """Whether the API lists and gives resumes."""
    return "yes" if is_allowed else "no"


def parse_maximum(text: str) -> int | None:
    """A number of resumes; None for unlimited. Raises InvalidArgument."""
    if text.strip() == UNLIMITED:
        return None
    number = _number(text)
    if number is None:
        raise InvalidArgument(f'Resumes: "{text}" is neither a number nor {UNLIMITED}')
    return number


def parse_rate(text: str, window: Requests) -> int | None:
    """A number of requests; None for the default, 0 for unlimited. Raises InvalidArgument."""
    words = {DEFAULT: None, UNLIMITED: 0}
    if text.strip() in words:
        return words[text.strip()]
    number = _number(text)
    if not number or number > MAX_REQUESTS:
        raise InvalidArgument(
            f'{WINDOWS[window]}: "{text}" is neither a number from 1 to {MAX_REQUESTS:,}, '
            f"{UNLIMITED} nor {DEFAULT}"
        )
    return number


def _number(text: str) -> int | None:
    """The number, typed with or without commas; None for anything else."""
    digits = text.strip().replace(",", "")
    if digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS:
        return int(digits)
    return None


def facts(plan: PlanInfo) -> Iterator[Fact]:
    """Each limit of the plan."""
    yield "Resumes", maximum_text(plan.max_resumes)
    yield "Listing", listing_text(plan.api_listing)
    for label, rate in zip(WINDOWS.values(), plan.rates, strict=True):
        yield label, rate_text(rate)


def differences(old: PlanInfo, new: PlanInfo) -> list[Fact]:
    """What differs, as `50 → 40`; empty when nothing does."""
    return [
        (label, f"{before} → {after}")
        for (label, before), (_, after) in zip(facts(old), facts(new), strict=True)
        if before != after
    ]


def allowance(plan: PlanInfo) -> str:
    """The plan in short: `50 resumes, without API listing`."""
    most = plan.max_resumes
    number = "any number of resumes" if most is None else counted(most, "resume")
    return f"{number}, {'with' if plan.api_listing else 'without'} API listing"
