"""What services log is a line, escaped."""

import logging

from cli.logs import FORMAT, SafeFormatter, set_up_logs


def test_a_record_is_one_escaped_line_in_utc() -> None:
    record = logging.LogRecord("resumes.server", logging.WARNING, "", 0, "a\x1b\n%s", ("b",), None)
    record.created = 0.0

    shown = SafeFormatter(FORMAT, "%Y-%m-%dT%H:%M:%SZ").format(record)

    assert shown == "1970-01-01T00:00:00Z WARNING resumes.server: a\\x1b\\nb"


def test_our_own_log_appears_from_info_on() -> None:
    logger = logging.getLogger("resumes")
    level = logger.level
    try:
        set_up_logs()
        assert logger.isEnabledFor(logging.INFO)
    finally:
        logger.setLevel(level)
