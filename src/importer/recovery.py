"""What an importer that was killed left behind, before the first scan (pitfalls I6).

a journal and its file    the ledger says that it was imported: file it away;
                          otherwise judge it again from where it lies
a journal alone           the file is still in the inbox, or was filed: drop the journal
a file alone              its name is lost, its account is not: judge it all the same
"""

import dataclasses
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from importer import claims
from importer.claims import Claim
from importer.filing import Filing
from importer.steps import Observer, Step
from importer.workspaces import Workspace, iter_abandoned


class Recovery:
    """Takes over from importers that are gone."""

    def __init__(self, work: Path, filing: Filing, observe: Observer) -> None:
        self._work = work
        self._filing = filing
        self._observe = observe

    def take_over(self) -> list[Workspace]:
        """The workspaces of dead importers, which are ours now."""
        return list(iter_abandoned(self._work))

    def iter_claims(
        self, workspace: Workspace, account_names: Mapping[str, str]
    ) -> Iterator[Claim]:
        """The claims in a workspace taken over that have a file, counted as begun once more.

        `account_names` is by id, for those whose journal cannot be read.
        """
        for folder in workspace.account_folders():
            if not folder.is_dir():
                continue
            for claim in claims.iter_claims(folder):
                if os.path.lexists(claim.path):
                    yield self._begin_again(claim, account_names)
                else:
                    self._filing.forget(claim)

    def _begin_again(self, claim: Claim, account_names: Mapping[str, str]) -> Claim:
        claim = dataclasses.replace(
            claim,
            attempt=claim.attempt + 1,
            account=claim.account or account_names.get(claim.account_id, ""),
        )
        claims.rewrite(claim)
        self._observe(Step.TAKEN_OVER)
        return claim
