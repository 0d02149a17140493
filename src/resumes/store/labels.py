"""Labels: the group of a resume, such as a class or a client; a resume has at most one."""

import unicodedata
from typing import Final

from resumes.errors import InvalidArgument
from resumes.text import is_harmless

MAX_LABEL_CHARS: Final = 100


def check_label(text: str) -> str:
    """Return the label as it is stored: in NFC, without blanks around it. Raises InvalidArgument."""
    label = unicodedata.normalize("NFC", text.strip())
    is_text = is_harmless(label) and "\ufffd" not in label  # which stands for bytes of no text
    if not 1 <= len(label) <= MAX_LABEL_CHARS or not is_text:
        raise InvalidArgument(
            f"Invalid label {text[:80]!r}: must be 1 to {MAX_LABEL_CHARS} printable characters"
        )
    return label


def label_of_folder(folder: str) -> str | None:
    """Return the label of files in the folder, whose name is escaped; None if it has none.

    A longer name is cut: a file is not rejected because of its folder.
    """
    name = unicodedata.normalize("NFC", folder.strip())
    return name[:MAX_LABEL_CHARS].rstrip() or None
