"""Every error code has an exit code."""

import pytest

from cli.exits import EXIT_CODES, ExitCode
from resumes.errors import ErrorCode


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_code_has_an_exit_code_that_is_not_success(code: ErrorCode) -> None:
    assert EXIT_CODES[code] in (ExitCode.FAILED, ExitCode.USAGE, ExitCode.UNAVAILABLE)


def test_the_exit_codes_are_those_that_scripts_rely_on() -> None:
    assert [(code.name, code.value) for code in ExitCode] == [
        ("DONE", 0),
        ("FAILED", 1),
        ("USAGE", 2),
        ("UNAVAILABLE", 3),
        ("INTERRUPTED", 130),
        ("READER_GONE", 141),
    ]


def test_store_and_network_are_3_and_what_was_typed_is_2() -> None:
    by_exit = {
        exit_code: {code for code, found in EXIT_CODES.items() if found is exit_code}
        for exit_code in (ExitCode.USAGE, ExitCode.UNAVAILABLE)
    }
    assert by_exit[ExitCode.USAGE] == {ErrorCode.INVALID_ARGUMENT}
    assert by_exit[ExitCode.UNAVAILABLE] == {
        ErrorCode.STORE_UNAVAILABLE,
        ErrorCode.OUTCOME_UNKNOWN,
        ErrorCode.STORE_INCOMPATIBLE,
    }
