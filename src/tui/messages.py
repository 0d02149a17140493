"""What a screen may ask of the app."""

from textual.message import Message


class ModeAsked(Message):
    """Somebody show the list of this mode, over whatever was open there."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.mode = mode
