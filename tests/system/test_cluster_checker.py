"""The checker of the cluster drill finds what it is there for."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def checker(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Benchmarks are no part of the installed packages."""
    monkeypatch.syspath_prepend(repository)
    return importlib.import_module("benchmarks.cluster.checker")


@pytest.fixture
def history(checker: ModuleType) -> Any:
    """Three acknowledged creates, a file, and a reader that saw all of them."""
    history = importlib.import_module("benchmarks.cluster.history").History("ana")
    for number in (1, 2, 3):
        history.acknowledge(history.begin(f"ana-{number}"), f"id-{number}")
    history.dropped.append("ana-file-1")
    walk = history.begin_walk(process=0)
    walk.ids += ["id-1", "id-2", "id-3", "id-4"]
    walk.is_finished = True
    return history


Judge = Callable[..., list[str]]


@pytest.fixture
def kinds(checker: ModuleType, history: Any) -> Judge:
    """What is found wrong when the store holds these, by id; the counter fits unless told."""

    def judge(counter: int | None = None, **stored: str) -> list[str]:
        resumes = [checker.Stored(one.replace("_", "-"), marker) for one, marker in stored.items()]
        count = len(resumes) if counter is None else counter
        return [
            finding.kind for finding in checker.check(history, checker.Holdings(resumes, count))
        ]

    return judge


ALL = {"id_1": "ana-1", "id_2": "ana-2", "id_3": "ana-3", "id_4": "ana-file-1"}


def test_nothing_is_wrong_when_all_is_there_once(kinds: Judge) -> None:
    assert kinds(**ALL) == []


def test_an_acknowledged_resume_that_is_not_stored_is_lost(kinds: Judge) -> None:
    stored = {one: marker for one, marker in ALL.items() if one != "id_2"}

    assert kinds(**stored) == ["lost", "vanished"]


def test_a_resume_that_is_stored_twice_with_one_key_is_doubled(kinds: Judge) -> None:
    assert kinds(**ALL, id_5="ana-2") == ["doubled"]


def test_a_key_that_was_answered_with_two_ids_is_doubled(kinds: Judge, history: Any) -> None:
    history.acknowledge(history.creations["ana-1"], "id-9")

    assert "doubled" in kinds(**ALL)


def test_a_file_that_was_put_away_as_done_and_is_not_stored_is_lost(
    kinds: Judge, history: Any
) -> None:
    history.dropped.append("ana-file-2")

    assert kinds(**ALL) == ["not imported"]

    history.done.add("ana-file-2")

    assert kinds(**ALL) == ["lost"]


def test_a_file_that_is_imported_twice_is_doubled(kinds: Judge) -> None:
    assert kinds(**ALL, id_5="ana-file-1") == ["doubled"]


def test_a_create_without_an_answer_is_told_and_may_be_stored_or_not(
    kinds: Judge, history: Any
) -> None:
    history.begin("ana-5")

    assert kinds(**ALL) == ["unanswered"]
    assert kinds(**ALL, id_5="ana-5") == ["unanswered"]


def test_a_refused_create_is_told(kinds: Judge, history: Any) -> None:
    history.begin("ana-5").refusals.append(422)

    assert kinds(**ALL) == ["refused"]


def test_a_resume_that_nobody_sent_is_told(kinds: Judge) -> None:
    assert kinds(**ALL, id_5="bob-1") == ["unasked"]


def test_pages_out_of_order_are_told(kinds: Judge, history: Any) -> None:
    history.walks[0].ids[1:3] = ["id-3", "id-2"]

    assert kinds(**ALL) == ["disordered"]


def test_an_entry_that_was_shown_twice_is_told(kinds: Judge, history: Any) -> None:
    history.walks[0].ids.insert(1, "id-1")

    assert kinds(**ALL) == ["disordered"]


def test_a_resume_below_a_pages_last_id_that_was_not_shown_is_skipped(
    kinds: Judge, history: Any
) -> None:
    history.walks[0].ids.remove("id-4")

    assert kinds(**ALL) == []  # it may have come later

    history.walks[0].ids.remove("id-2")

    assert kinds(**ALL) == ["skipped"]


def test_a_resume_that_was_acknowledged_before_a_whole_walk_is_due_on_it(
    kinds: Judge, history: Any
) -> None:
    history.walks[0].ids[:] = ["id-1"]

    assert kinds(**ALL) == ["skipped", "skipped"]

    history.walks[0].is_finished = False

    assert kinds(**ALL) == []


def test_a_counter_that_is_not_the_number_of_resumes_is_told(kinds: Judge) -> None:
    assert kinds(counter=5, **ALL) == ["miscounted"]
