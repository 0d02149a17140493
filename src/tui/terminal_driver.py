"""Reading from a terminal that may send anything: another encoding, noise, sequences made up."""

import select
import threading

from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver

from tui.ending import end_soon

GONE = 129
"""The exit code of a program whose terminal went away."""


class TerminalDriver(LinuxDriver):
    """Textual's, but what it cannot read is dropped, where that would end the program."""

    def run_input_thread(self) -> None:
        """Keys reach the app until the end, whatever else comes between them."""
        threading.Thread(target=self._watch, daemon=True).start()
        while not self.exit_event.is_set():
            try:
                super().run_input_thread()
            except (ValueError, OverflowError):
                continue  # bytes that are no UTF-8, or numbers beyond all terminals
            except OSError:
                return  # the terminal is gone

    def _watch(self) -> None:
        """The program ends when the terminal goes, also where no signal tells of that."""
        poller = select.poll()
        poller.register(self.fileno, 0)
        poller.poll()
        if not self.exit_event.is_set():
            end_soon(GONE)
            self._app.call_later(self._app.exit, None, GONE)


def tolerant(driver: type[Driver]) -> type[Driver]:
    """The driver to use where Textual would use this one."""
    return TerminalDriver if driver is LinuxDriver else driver
