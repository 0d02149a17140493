"""`resumes label` and `resumes labels`; lists, exports and deletions of many resumes."""

import contextlib
import json
from collections.abc import Callable, Iterator

import pytest

from resumes.store import stored_resumes
from tests.command.conftest import CommandLine, a_resume, on_terminal, store_resumes


def names(acme: CommandLine, *words: str) -> list[str]:
    listed = acme.answers("list", "--json", "--limit", "100", *words)["resumes"]
    return [one["title"].removesuffix(" Resume") for one in listed]


def test_labels_are_set_changed_removed_and_listed_with_counts(acme: CommandLine) -> None:
    ada, bo, cy = store_resumes(acme.home, *map(a_resume, ("Ada", "Bo", "Cy")))
    assert acme("labels").stderr == 'No labels in account "acme".\n'
    assert acme.answers("labels", "--json") == {"labels": []}

    done = acme("label", ada, bo, ada, " class 2026 ", "--account", "acme")

    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == 'Set the label "class 2026" of 2 resumes in account "acme".\n'
    changed = acme.answers("label", bo, "b", "--json")
    assert changed == {"label": "b", "ids": [bo]}
    assert acme.succeeds("labels").splitlines() == [
        "label       resumes",
        "b                 1",
        "class 2026        1",
    ]
    counts = [{"label": "b", "resumes": 1}, {"label": "class 2026", "resumes": 1}]
    assert acme.answers("labels", "--json") == {"labels": counts}
    assert names(acme, "--label", "class 2026") == names(acme, "--filter", "label:class") == ["Ada"]
    assert acme.succeeds("show", ada).splitlines()[1].endswith(" UTC, label class 2026")
    entries = acme.answers("list", "--json")["resumes"]
    assert [one.get("label", "none") for one in entries] == ["class 2026", "b", "none"]
    removed = acme("label", "--none", ada, cy)
    assert removed.stderr == 'Removed the label of 2 resumes in account "acme".\n'
    assert acme.answers("labels", "--json") == {"labels": counts[:1]}


def test_nothing_is_labelled_by_a_wrong_command(acme: CommandLine) -> None:
    ada, bo = store_resumes(acme.home, a_resume("Ada"), a_resume("Bo"))
    for words in ([ada], [ada, bo], ["class"], ["--none"]):
        assert acme(*("label", *words)).exit_code == 2
    assert "then their label, or use --none" in acme.fails(2, "label", ada, bo)
    assert "1 to 100 printable characters" in acme.fails(2, "label", ada, "x" * 101)
    assert "Resume not found" in acme.fails(1, "label", ada, "0" * 24, "class")
    assert acme.answers("labels", "--json") == {"labels": []}


@pytest.fixture
def classes(acme: CommandLine) -> CommandLine:
    """An account with two resumes of 2025, and two of 2026."""
    ids = store_resumes(acme.home, *map(a_resume, ("Ada 1", "Bo 1", "Ada 2", "Bo 2")))
    acme.succeeds("label", *ids[:2], "class-2025")
    acme.succeeds("label", *ids[2:], "class-2026")
    return acme


def test_all_resumes_of_a_label_are_exported(classes: CommandLine) -> None:
    def exported(*words: str) -> list[str]:
        lines = classes.succeeds("export", *words).splitlines()
        return [json.loads(line)["header"]["name"] for line in lines]

    assert exported("--label", "class-2026") == ["Ada 2", "Bo 2"]
    assert exported("--label", "class-2026", "--filter", "ada") == ["Ada 2"]
    assert exported("--label", "none") == []
    assert "use either" in classes.fails(2, "export", "--all", "--label", "class-2026")


def test_all_resumes_of_a_label_or_a_search_are_deleted(classes: CommandLine) -> None:
    assert classes.fails(2, "delete", "--label", "class-2025") == (
        "Cannot ask for confirmation without a terminal: use --yes"
    )
    deleted = classes("delete", "--label", "class-2025", "--yes")
    assert (deleted.exit_code, deleted.stdout) == (0, "")
    assert deleted.stderr == (
        'Deleted 2 resumes from account "acme". Imported files, backups and exports are kept: '
        "see docs/erasing.md to erase a person.\n"
    )
    assert names(classes) == ["Ada 2", "Bo 2"]
    again = classes("delete", "--label", "class-2025")
    assert (again.exit_code, again.stderr) == (0, 'No resume in account "acme" matches.\n')
    both = ("--label", "class-2026", "--filter", "name:bo")
    assert classes.answers("delete", *both, "--yes", "--json") == {"deleted": 1}
    assert names(classes) == ["Ada 2"]
    for words in ([], ["0" * 24, "--label", "class-2026"]):
        assert "--label, --filter or --before" in classes.fails(2, "delete", "--yes", *words)


def test_what_is_not_searched_yet_is_not_deleted_and_that_is_said(
    classes: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.commands.resumes.EXPORT_CATCH_UP_TIMEOUT_S", 0.0)
    deleted = classes("delete", "--filter", "ada", "--yes")
    assert (deleted.exit_code, deleted.stderr.splitlines()) == (
        1,
        [
            'Deleted 0 resumes from account "acme".',
            "Incomplete: The 4 newest resumes are not searched yet. Delete again later.",
        ],
    )


def test_older_resumes_are_deleted(classes: CommandLine) -> None:
    day = classes.answers("list", "--json")["resumes"][0]["createdAt"][:10]
    assert classes.answers("delete", "--before", day, "--yes", "--json") == {"deleted": 0}
    assert '"2026-13-01" is not a day: use a date such as 2026-01-31' in classes.fails(
        2, "delete", "--before", "2026-13-01", "--yes"
    )
    words = ("--before", "9999-12-31", "--label", "class-2025", "--yes", "--json")
    assert classes.answers("delete", *words) == {"deleted": 2}
    assert names(classes) == ["Ada 2", "Bo 2"]


def test_on_a_terminal_a_count_is_shown_before_many_are_deleted(classes: CommandLine) -> None:
    line = ("--home", str(classes.home), "delete", "--label", "class-2026")
    code, _, written = on_terminal(*line, typed=b"n\n", is_all=True)
    assert code == 1
    assert 'Permanently delete 2 resumes from account "acme"?' in written
    assert len(names(classes)) == 4
    code, _, written = on_terminal(*line, typed=b"y\n", is_all=True)
    assert (code, names(classes)) == (0, ["Ada 1", "Bo 1"])


def test_a_deletion_that_is_interrupted_says_how_far_it_came(
    classes: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def interrupted(*_: object) -> Iterator[Callable[[str, int], None]]:
        def count(_: str, done: int) -> None:
            if done == 3:
                raise KeyboardInterrupt

        yield count

    monkeypatch.setattr(stored_resumes, "MAX_DELETED", 1)
    monkeypatch.setattr("cli.commands.resumes.counting", interrupted)
    stopped = classes("delete", "--before", "9999-12-31", "--yes")
    assert stopped.exit_code == 130
    assert stopped.stderr.startswith("Stopped: deleted at least 3 of 4 resumes.\n")
    assert names(classes) == ["Bo 2"]
