"""The rules of those who drop files, and of the importer that takes them."""

import os
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import rule

from resumes.store import import_history, import_requests
from resumes.store.import_requests import RequestKind
from tests.stateful.files import BAD, IGNORED, SEVERAL, Content, File, one
from tests.stateful.requests import Body, Look
from tests.stateful.world import BODIES, NAMES, PLACES, World

FIRST_S = 1_700_000_000
"""When the first file was written. Each next one a second later, for that is their order."""

SOME_BODIES = st.lists(BODIES, min_size=1, max_size=4)


class Analyzers(World):
    """Files. They may be dropped while there is no such account."""

    @rule(name=NAMES, bodies=SOME_BODIES)
    def drop(self, name: str, bodies: list[Body]) -> None:
        """Some files lie in an account's inbox, each with one resume."""
        for body in bodies:
            self._drop(name, one(body))

    @rule(name=NAMES, looks=st.lists(st.sampled_from(Look), min_size=1, max_size=5))
    def drop_new_ones(self, name: str, looks: list[Look]) -> None:
        """Some files lie there with resumes that nobody has seen before."""
        for look in looks:
            self._drop(name, one(self.new_body(look)))

    @rule(name=NAMES, kind=st.sampled_from(list(SEVERAL)), bodies=SOME_BODIES)
    def drop_one_of(self, name: str, kind: str, bodies: list[Body]) -> None:
        """A bundle lies there."""
        self._drop(name, SEVERAL[kind](bodies))

    @rule(name=NAMES, kind=st.sampled_from(list(BAD)))
    def drop_a_bad_one(self, name: str, kind: str) -> None:
        """A file lies there that holds no resume."""
        self._drop(name, BAD[kind])

    def _drop(self, name: str, content: Content) -> None:
        file = File(len(self.imports.files) + 1, name, content)
        self.imports.files.append(file)
        self._write(self.reach.root / file.name, content.raw)

    @rule(name=NAMES, ending=st.sampled_from(IGNORED))
    def drop_what_is_ignored(self, name: str, ending: str) -> None:
        """A file lies there that no importer touches."""
        self._write(self.reach.root / name / f"ignored{ending}", b"{}")
        self.imports.ignored.add(f"{name}/ignored{ending}")

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        written_s = FIRST_S + len(self.imports.files)
        os.utime(path, (written_s, written_s))

    @rule()
    def drain(self) -> None:
        """An importer takes what there is."""
        if self.imports.files:
            self.drain_folder()

    @rule(at=st.integers(1, 15))
    def drain_killed(self, at: int) -> None:
        """An importer is killed on its way, and has done nothing that it should not have."""
        since_us = self.reach.now_us()
        self.reach.drain_killed(at)
        until_us = self.reach.now_us()
        self.imports.note(self.reach.store, since_us=since_us, until_us=until_us, is_drained=False)

    @rule(place=PLACES)
    def retry(self, place: int) -> None:
        """Somebody asks for a file that failed to be tried again."""
        self._ask(place, RequestKind.RETRY, "failed")

    @rule(place=PLACES)
    def release(self, place: int) -> None:
        """Somebody asks for a file that is held to be let in."""
        self._ask(place, RequestKind.RELEASE, "held")

    def _ask(self, place: int, action: RequestKind, outcome: str) -> None:
        known = [file for file in self.imports.files if not file.is_forgotten]
        files = [file for file in known if file.is_put_away_as(outcome)]
        if files:
            file = files[place % len(files)]
            assert file.owner is not None
            row = import_history.get_file(self.reach.store, file.claim_id, account_id=file.owner.id)
            import_requests.request_files(self.reach.store, [row], action)
            file.is_asked_for = True
