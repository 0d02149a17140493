"""A hand takes files and files them away, in one workspace."""

import contextlib
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from importer import journals, reading
from importer.claims import CLAIM_ID, Claim
from importer.filing import Filed, Filer, Filing
from importer.journals import Journal
from importer.steps import Observer, Step
from importer.taking import Again, Candidate, Left, Taken, Taker
from importer.trying import Trial
from importer.workspaces import Workspace
from resumes.clock import Clock
from resumes.store.identifiers import ACCOUNT_ID


@dataclass(slots=True)
class Remains:
    """What an importer that is gone left in its workspace."""

    claims: list[Claim] = field(default_factory=list)
    suspects: list[Claim] = field(default_factory=list)
    """Files still in the inbox, one of which may have ended it (pitfalls I10)."""


class Hand:
    """Works in one workspace, which it holds until it leaves."""

    def __init__(
        self, workspace: Workspace, root: Path, trial: Trial, clock: Clock, observe: Observer
    ) -> None:
        self.workspace = workspace
        self._root = root
        self._observe = observe
        self._taker = Taker(workspace, trial, observe)
        self._filer = Filer(root, self._taker, clock, observe)
        self._suspects: dict[str, tuple[str, Journal]] = {}

    @property
    def id(self) -> str:
        """The importer's id, which its workspace is called by."""
        return self.workspace.path.name

    def take(self, candidates: Sequence[Candidate]) -> list[Taken | Left]:
        """Files in the inbox that are ready are ours; one answer each, in order. Raises OSError
        when none can be claimed, and has changed nothing then."""
        return self._taker.take(candidates)

    def judge(self, requests: Iterable[Again]) -> list[Taken | Left]:
        """Claimed files are tried again where they lie; one answer each, in order."""
        return self._taker.judge(requests)

    def file_away(self, filings: Sequence[Filing]) -> list[Filed]:
        """Each file is put away as far as possible; one answer each, in order."""
        return self._filer.file_away(filings)

    def begin(self, claim: Claim) -> None:
        """The claimed file is about to be unpacked (pitfalls I10). Raises OSError."""
        self._taker.begin(claim)

    def renew(self, claim_id: str, new_id: str) -> Claim:
        """A claimed file that changed after it was committed is under a new claim, and settles.
        Raises OSError."""
        return self._taker.renew(claim_id, new_id)

    def keep_suspects(self, suspects: list[Claim]) -> None:
        """They are suspects still for the next importer, should this one end too."""
        if not suspects:
            return
        journal = journals.write(self.workspace.path, suspects)
        for claim in suspects:
            self.end_suspect(claim.name_hex)
            self._suspects[claim.name_hex] = (claim.id, journal)

    def end_suspect(self, name_hex: str) -> None:
        """The file of this name was tried alone, and is no suspect any more."""
        claim_id, journal = self._suspects.pop(name_hex, (None, None))
        if claim_id is not None and journal is not None:
            journal.settle(claim_id)

    def take_over(self, *, without: Collection[str] = ()) -> Remains:
        """What lies in the workspace is ours to go on with (pitfalls I6).

        Claims of the accounts `without` stay as they are, for a later importer.

        a journal and its file    to be gone on with
        a journal alone           the file is still in the inbox, or was filed: tidied up
        a file alone              its name is lost, its account is not
        """
        entries, unread = journals.load(self.workspace.path)
        remains = Remains()
        found = {claim_id: folder for folder, claim_id in self._find_claims()}
        for claim_id, folder in sorted(found.items()):
            entry = entries.pop(claim_id, None)
            if folder.rpartition("/")[2] in without:
                continue
            if entry is not None and entry.claim.folder == folder:
                claim = _counted(entry)
                self._taker.adopt(claim, entry.journal, entry.signature)
            else:
                claim = self._name(claim_id, folder)
            remains.claims.append(claim)
            self._observe(Step.TAKEN_OVER)
        unread_ids = {entry.claim.id for entry in unread}
        suspects: dict[str, Claim] = {}
        for claim_id, entry in entries.items():
            if claim_id in unread_ids and self._is_in_inbox(entry.claim):
                claim = _counted(entry)
                # Also the importer that is gone may have kept it as a suspect of another.
                known = suspects.setdefault(claim.name_hex, claim)
                if claim.attempt > known.attempt:
                    suspects[claim.name_hex] = claim
            self._taker.adopt(entry.claim, entry.journal)
            self._filer.forget(entry.claim)
        remains.suspects.extend(suspects.values())
        return remains

    def leave(self) -> None:
        """Other importers may take over what is left."""
        self._taker.end_attempts()
        self.workspace.leave()

    def _find_claims(self) -> Iterable[tuple[str, str]]:
        for folder, name in self.workspace.iter_claim_ids():
            if not ACCOUNT_ID.fullmatch(folder.rpartition("/")[2]):
                continue
            if CLAIM_ID.fullmatch(name):
                yield folder, name
            elif name.endswith(".tmp") and CLAIM_ID.fullmatch(name.removesuffix(".tmp")):
                with contextlib.suppress(OSError):  # a report that was being written
                    (Path(folder) / name).unlink()

    def _name(self, claim_id: str, folder: str) -> Claim:
        """A claim whose journal is lost."""
        claimed_at_us = int(claim_id[:16], 16)
        claim = Claim(claim_id, folder, account="", name=claim_id, claimed_at_us=claimed_at_us)
        journal = journals.write(self.workspace.path, [claim])
        journal.end_reading()
        self._taker.adopt(claim, journal)
        return claim

    def _is_in_inbox(self, claim: Claim) -> bool:
        path = os.path.join(self._root, os.fsdecode(bytes.fromhex(claim.name_hex)))  # noqa: PTH118  (text, as names are)
        return bool(claim.name_hex) and reading.find_signature(path) is not None


def _counted(entry: journals.Entry) -> Claim:
    """The claim, with the reading counted that ended the importer."""
    return entry.claim._replace(attempt=entry.claim.attempt + entry.is_begun)
