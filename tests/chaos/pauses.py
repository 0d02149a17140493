"""Spans of time that are what a row is about, and no waiting for something."""

import threading


def let_pass(span_s: float) -> None:
    """So much time has gone by, in which others work."""
    threading.Event().wait(span_s)
