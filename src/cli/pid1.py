"""Run as process 1 of a container, which inherits orphaned processes and must reap them.

For example, a command that `on_import` runs may leave background processes. So process 1 only reaps
processes and forwards signals, and its child runs `resumes`. If the service itself reaped all
children, it would consume the exit codes of processes that it waits for.
"""

import os
import signal
import sys
from typing import Final

FORWARDED: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
FROM_KEYS: Final = (signal.SIGINT, signal.SIGQUIT)
"""Signals from keys, which the terminal also sends to the child."""


def run_in_child() -> None:
    """Fork and return in the child. The parent ends after the child, with the same exit code.

    Call this before threads are started. If a signal kills the child, the exit code is 128 plus the
    signal's number.
    """
    # The kernel drops signals that process 1 neither handles nor blocks.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [*FORWARDED, signal.SIGCHLD])
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    while True:
        received = signal.sigwaitinfo([*FORWARDED, signal.SIGCHLD])
        number, is_from_kernel = received.si_signo, received.si_code > 0
        if number != signal.SIGCHLD:
            if not (is_from_kernel and number in FROM_KEYS):
                os.kill(child, number)
            continue
        # One SIGCHLD may report several children.
        pid, status = os.waitpid(-1, os.WNOHANG)
        while pid not in (0, child):
            pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            sys.exit(code if code >= 0 else 128 - code)
