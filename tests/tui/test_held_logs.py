"""Log lines wait while the terminal is drawn on."""

import io
import logging

from tui.held_logs import held_logs


def test_lines_for_a_stream_come_after_the_block() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    try:
        with held_logs():
            logging.getLogger("resumes.store").warning("A commit failed")
            assert stream.getvalue() == ""
        assert stream.getvalue() == "A commit failed\n"
    finally:
        logging.getLogger().removeHandler(handler)


def test_handlers_are_as_before_even_after_a_crash() -> None:
    before = list(logging.getLogger().handlers)

    try:
        with held_logs():
            raise RuntimeError
    except RuntimeError:
        pass

    assert logging.getLogger().handlers == before
