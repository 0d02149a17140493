"""Symptoms that the page of troubleshooting names, and what brings each of them about."""

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from cli.main import resumes
from resumes.settings import Settings
from resumes.store import keys, open_store
from resumes.store.sqlite.driver import dbapi
from server.app import create_app
from tests.server.builders import Client


@dataclass(frozen=True)
class Scene:
    """A home that is not there yet, and what is said to somebody who uses it."""

    home: Path
    monkeypatch: pytest.MonkeyPatch
    clients: contextlib.ExitStack

    @property
    def database(self) -> Path:
        return self.home / "resumes.db"

    @property
    def inbox(self) -> Path:
        return self.home / "inbox" / "ana"

    def says(self, *words: str) -> str:
        """What the command prints, on both streams, however it ends."""
        line = ["--home", str(self.home), *words]
        return CliRunner().invoke(resumes, line, prog_name="resumes").output

    def has_account(self, plan: str = "business") -> None:
        """There is a home, with the account `ana`."""
        self.says("accounts", "create", "ana", "--plan", plan)

    def drops(self, *files: Path) -> str:
        """What the importer says of files in the inbox."""
        for file in files:
            shutil.copy(file, self.inbox)
        return self.says("watch", "--once", "--settle", "0")

    def client(self, key: str = "", plan: str = "business", **settings: Any) -> Client:
        """A client of the API on this home, with a key of `ana` unless another is said."""
        if not self.home.exists():
            self.has_account(plan)
        store = self.clients.enter_context(open_store(f"sqlite:///{self.database}"))
        app = create_app(Settings(home=self.home, **settings), store)
        client = Client(app, key or keys.create_key(store, "ana").secret)
        self.clients.callback(client.close)
        return client

    def alters(self, statement: str) -> None:
        """The store was altered behind the program's back."""
        connection = dbapi.connect(self.database)
        connection.execute(statement)
        connection.commit()
        connection.close()


Symptom = Callable[[Scene], str]
SYMPTOMS: Final[dict[str, Symptom]] = {}


def shows(title: str) -> Callable[[Symptom], Symptom]:
    """The function brings about what the page has under this title."""

    def remember(symptom: Symptom) -> Symptom:
        SYMPTOMS[title] = symptom
        return symptom

    return remember
