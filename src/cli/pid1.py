"""Process 1 of a container, which inherits the processes whose parents have ended, and must reap them.

A command that `on_import` runs may leave some in the background, for example. So process 1 only reaps
and forwards signals, and a child of it runs `resumes`: there, waiting for any child would take the exit
codes of those that the service itself waits for.
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
"""What a terminal sends to the child too when keys are pressed."""


def run_in_child() -> None:
    """Return in a child of this process; here, end when it has ended, with the same exit code.

    Call it before threads are started. If a signal killed the child, the exit code is 128 plus its number.
    """
    # The kernel drops signals to process 1 that it neither handles nor blocks.
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
        # One signal may stand for several children.
        pid, status = os.waitpid(-1, os.WNOHANG)
        while pid not in (0, child):
            pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            sys.exit(code if code >= 0 else 128 - code)
