"""Whether somebody has a file open for writing (pitfalls I4).

A read lease is given only for a file that nobody has open for writing, nor mapped for it. It is
given back at once: what counts is whether it could be had.
"""

import errno
import fcntl
import signal
import threading


def find_writer(descriptor: int) -> bool | None:
    """Whether the file of a read-only descriptor has a writer; None where the system cannot say.

    It cannot on network file systems, nor for files of another user unless it runs as root.
    """
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    except AttributeError:  # no leases on this system
        return None
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def ignore_breaks() -> None:
    """Whoever opens the file for writing while we hold the lease makes the system send SIGIO,
    which ends a process that does not expect it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGIO, signal.SIG_IGN)
