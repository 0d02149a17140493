"""A finding in full."""

from resumes.health.findings import Finding
from tui.screens.health.dialog import iter_paragraphs


def texts(finding: Finding) -> list[str]:
    found = [paragraph.mark + paragraph.content.plain for paragraph in iter_paragraphs(finding)]
    return [text for text in found if text]


def test_a_command_stands_on_a_line_of_its_own() -> None:
    finding = Finding("home", "/srv is open", "chmod o-rwx /srv", "chmod o-rwx /srv")

    assert texts(finding) == [
        "✗ home  /srv is open",
        "→ chmod o-rwx /srv",
        "In a shell (c on the list copies it):",
        "  chmod o-rwx /srv",
    ]


def test_without_a_command_none_is_promised() -> None:
    assert texts(Finding("disk", "full", "Make room")) == ["✗ disk  full", "→ Make room"]
