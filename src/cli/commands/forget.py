"""`resumes forget`: erase a person, everywhere that this program can reach."""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile

import click

from cli.errors import ExitCode
from cli.groups import YES, NewPath, account_option, command, confirm
from cli.output import instant, put, put_json, safe_text, say
from cli.progress import status_line
from cli.session import Session, choose_account, pass_session
from importer import personal_files
from importer.files import describe
from importer.filing import load_report, report_path
from importer.json_texts import CannotUnpack
from importer.options import Limits
from importer.personal_files import Action, PersonalFile, Search
from resumes.analyzer.person import find_email, person_of
from resumes.clock import system_clock, timestamp
from resumes.errors import InvalidArgument, NotFound
from resumes.export import Exporter, ExportFormat
from resumes.output_files import OutputFile
from resumes.rendering import RenderingFailed, TooLong
from resumes.settings import Settings
from resumes.store import Store, forgetting, forgotten, stored_resumes
from resumes.store.accounts import AccountInfo, list_accounts
from resumes.store.forgetting import StoredPerson
from resumes.store.forgotten import Subject, SubjectKind
from resumes.store.import_requests import dismiss
from resumes.text import counted
from resumes.watched_folder import DONE, end_of, find_other, list_watched, owner_of
from resumes.watched_names import is_document

MAX_PASSES = 3
"""The maximum number of passes. A pass can find files that an importer moved in the meantime."""

NOT_ERASED = (
    "No such person was erased. Give the same target as for the erasure; in place of a resume's ID, its name "
    'and address: "Ada Lovelace <ada@example.org>"'
)

BEYOND_REACH = (
    "Not erased: backups, exports and logs. docs/erasing.md explains what to do about them."
)


@command()
@click.argument("targets", metavar="EMAIL|ID...", nargs=-1, required=True)
@account_option("Erase the person only in this account. [default: all accounts]")
@click.option(
    "--export",
    "target",
    type=NewPath(dir_okay=False),
    metavar="FILE",
    help="First write a zip file for the person: each resume as JSON and PDF, and when each was "
    "created and erased.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what was found and write the --export file, if any, but erase nothing.",
)
@click.option("--lift", is_flag=True, help="Accept resumes of the person again.")
@YES
@pass_session
def forget(
    session: Session,
    targets: tuple[str, ...],
    account: str | None,
    target: str | None,
    dry_run: bool,
    lift: bool,
    yes: bool,
) -> ExitCode:
    """Erase a person from the store and the watched folders, for good.

    With an email address, the command erases all resumes with this address; with the ID of a resume, all
    resumes with its address and name. It also erases imported, failed, held and duplicate files that contain
    only these resumes, and removes the person from bundles. The store then rejects new resumes of the person,
    until you run the command with --lift.
    """
    settings = session.settings()
    output = None
    if target is not None:  # check this before the store is opened
        output = OutputFile(Path(target), remedy="choose another file")
    with session.store() as store:
        accounts = [choose_account(session, store, account)] if account else list_accounts(store)
        scope = accounts[0].id if account else ""
        try:
            subjects = [
                one for each in targets for one in _subjects(store, accounts, each, lift=lift)
            ]
        except NotFound:
            if yes:  # an earlier call may have erased the resume before it was killed
                forgetting.clear_traces(store, ())
            raise
        if lift:
            was = forgotten.lift(store, subjects, scope)
            sentence = "Resumes of this person are accepted again." if was else NOT_ERASED
            session.answer({"lifted": was}, sentence)
            return ExitCode.DONE if was else ExitCode.FAILED
        erasure = _Erasure(store, settings, accounts, scope, subjects, targets)
        resumes, files = erasure.find()
        others = erasure.find_others(resumes)
        if not session.as_json:
            _show(accounts, resumes, files)
            for name, count in others.items():
                say(safe_text(f"Kept: {counted(count, 'resume')} with the same address, {name}."))
        if dry_run:
            if output is not None and resumes:
                _export(output, settings, accounts, resumes, is_erased=False)
            if session.as_json:
                put_json(_as_json(accounts, resumes, files, others, erased=False))
            elif resumes or files:
                say("Nothing was erased, as you asked with --dry-run.")
            return ExitCode.DONE
        if not yes:
            confirm("Erase all of this for good?")
        if output is not None and resumes:
            _export(output, settings, accounts, resumes, is_erased=True)
        left = erasure.erase(resumes, files)
    if session.as_json:
        found = _as_json(accounts, resumes, files, others, erased=True)
        put_json(found | {"left": [*left.values()]})
    else:
        done = Counter(file.action for file in files if file.path not in left)
        gone = counted(done[Action.ERASE], "file")
        sentence = f"Erased {counted(len(resumes), 'resume')} and {gone}"
        if changed := done[Action.REWRITE]:
            sentence += f", and removed the person from {counted(changed, 'file')}"
        say(f"{sentence}.")
    for line in left.values():
        say(safe_text(line))
    for root in erasure.away:
        say(safe_text(f"Not searched, since it is not there: {root}"))
    say(BEYOND_REACH)
    return ExitCode.FAILED if left else ExitCode.DONE


_ADDRESS: Final = r"[^\s<>,;:()\"]+@[^\s<>,;:()\"]+"
TARGET: Final = re.compile(
    rf"""(?P<quote>"?)(?P<name>.*?)(?P=quote)\s*<(?P<address>{_ADDRESS})>|(?P<alone>{_ADDRESS})"""
)
"""An address, or a name (which may be in quotes) and an address in angle brackets."""


def _subjects(
    store: Store, accounts: Sequence[AccountInfo], target: str, *, lift: bool
) -> Sequence[Subject]:
    if "@" in target:
        found = TARGET.fullmatch(target.strip())
        if found is None:
            raise InvalidArgument(
                f'Not an email address: "{target[:80]}". Give one address, or a name and an address: '
                '"Ada Lovelace <ada@example.org>"'
            )
        name, address = found["name"] or "", found["address"] or found["alone"]
        if person := person_of(address, name) if name.strip() else None:
            return [Subject(SubjectKind.PERSON, person)]
        nameless = person_of(address, None)
        # A person without a name may have been identified by a resume's ID.
        return [
            Subject.of_email(address),
            *([Subject(SubjectKind.PERSON, nameless)] if lift and nameless else []),
        ]
    for account in accounts:
        with contextlib.suppress(NotFound):
            stored = stored_resumes.get_resume(store, account.id, target)
            return [Subject.of_resume(stored.document, stored.entry.name)]
    raise NotFound(
        f'Resume not found: "{target[:80]}". Give the ID of a resume, an email address, or both name and '
        'address: "Ada Lovelace <ada@example.org>"'
    )


class _Erasure:
    """Finds and erases a person in the store and in its watched folders."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        accounts: Sequence[AccountInfo],
        scope: str,
        subjects: Sequence[Subject],
        targets: Sequence[str],
    ) -> None:
        self._store, self._settings, self._scope = store, settings, scope
        self._accounts, self._subjects = accounts, subjects
        self._last = frozenset(targets)
        """The resumes whose IDs identify the person. They are erased last, for a repeated call."""

        self._known: dict[str, StoredPerson] = {}
        self._documents: dict[str, bool] = {}
        self._digests: set[bytes] = set()
        owner = owner_of(store)
        roots = dict.fromkeys([settings.inbox.absolute(), *list_watched(settings.home)])
        self.away = [root for root in roots if not root.is_dir()]
        """Watched folders that do not exist now and are therefore not searched."""

        self._roots = [root for root in roots if root.is_dir() and not find_other(root, owner)]

    def find(self) -> tuple[list[StoredPerson], list[PersonalFile]]:
        """Return the person's resumes and files."""
        with status_line() as show:
            if show is not None:
                show("Looking for the person", 0, None)
            ids = [account.id for account in self._accounts]
            resumes = [*forgetting.find_resumes(self._store, self._subjects, ids)]
            self._known |= {each.id: each for each in resumes}
            self._digests |= forgetting.find_digests(self._store, ids, self._known.keys())
            is_theirs = self._search().is_theirs
            self._documents = forgetting.find_documents(
                self._store, ids, self._known.keys(), is_theirs
            )
            found = (
                file
                for root in self._roots
                for file in personal_files.find_files(root, self._search())
                if not self._scope or self._is_in_scope(file.path)
            )
            return resumes, [*found]

    def find_others(self, resumes: Sequence[StoredPerson]) -> dict[str, int]:
        """Return by name the number of resumes with the same addresses that will not be erased.

        They belong to other people, or to the same person under another name."""
        addresses = {find_email(each.document) for each in resumes}
        subjects = {Subject.of_email(address) for address in addresses if address}
        if subjects <= {*self._subjects}:
            return {}
        ids = [account.id for account in self._accounts]
        found = forgetting.find_resumes(self._store, subjects, ids)
        names = Counter(_called(each.name) for each in found if each.id not in self._known)
        return dict(sorted(names.items()))

    def _search(self) -> Search:
        settings = self._settings
        limits = Limits(max_bytes=settings.max_body_bytes, max_file_bytes=settings.max_file_bytes)
        mentions = forgetting.mentions_of(self._subjects, self._known.values())
        return Search(
            self._subjects, mentions, settings.format, limits, self._documents, self._digests
        )

    def _is_in_scope(self, path: Path) -> bool:
        (account,) = self._accounts
        report = load_report(report_path(path))
        if not report and path.parts[-4:-3] == (DONE,):
            # Another account may have taken the folder over since.
            owners = forgetting.find_owners(self._store, end_of(path.name))
            return account.id in owners if owners else path.parent.name in account.folders
        return report.get("accountId") == account.id or f"-{account.id}-" in path.name

    def erase(
        self, resumes: Sequence[StoredPerson], files: Sequence[PersonalFile]
    ) -> dict[Path, str]:
        """Erase these resumes and files, and any that were added in the meantime.

        Return by path a line for each file that is left. The store records the person first, and
        rows are erased after files, so that a repeated call can finish the work of a killed call.
        """
        forgotten.remember(self._store, self._subjects, self._scope)
        if not self._scope:  # an account may have been added
            self._accounts = list_accounts(self._store, include_closed=True)
        left: dict[Path, str] = {}
        for _ in range(MAX_PASSES):
            for file in files:
                try:
                    if file.action is Action.CANNOT:
                        left[file.path] = (
                            f"{file.path} may name the person: look at it, and delete it"
                        )
                    else:
                        self._erase_file(file)
                        if file.unread:
                            left[file.path] = (
                                f"{file.path} has {counted(file.unread, 'file')} that may be the "
                                "person's, too: look at it, and delete it"
                            )
                except OSError as error:
                    left[file.path] = f"{file.path} is still there: {describe(error)}"
                except CannotUnpack as error:
                    left[file.path] = f"{file.path} cannot be written without the person: {error}"
            mentions = self._search().mentions
            # Erase the ledger's entries first: they are found only by the names on the resumes.
            for account in self._accounts:
                forgetting.clean_ledger(self._store, account.id, mentions)
            self._forget(each for each in resumes if each.id not in self._last)
            resumes, files = self.find()
            resumes = [each for each in resumes if each.id not in self._last]
            files = [file for file in files if file.path not in left]
            if not resumes and not files:
                break
        for file in files:
            left[file.path] = f"{file.path} is still there: run this again"
        self._forget(each for each in self._known.values() if each.id in self._last)
        if not forgetting.clear_traces(self._store, self._known.values()):
            left[Path()] = (
                "The store's log is in use: run this again, or stop the services, to empty it"
            )
        return left

    def _forget(self, some: Iterable[StoredPerson]) -> None:
        of_accounts: dict[str, list[str]] = {}
        for each in some:
            of_accounts.setdefault(each.account_id, []).append(each.id)
        for account_id, ids in of_accounts.items():
            forgetting.forget_resumes(self._store, account_id, ids)

    def _erase_file(self, file: PersonalFile) -> None:
        report = load_report(report_path(file.path))
        if is_document(file.path.name):  # erase it while the ledger identifies the person
            personal_files.erase_file(file, self._search())
        if "claimId" in report:
            account_id, claim_id = str(report["accountId"]), str(report["claimId"])
            if file.action is Action.ERASE:  # the file cannot be retried or released
                change = partial(dismiss, account_id=account_id, claim_ids=[claim_id])
                self._store.write(change, account_id=account_id)
            forgetting.clean_items(self._store, account_id, claim_id, file.theirs)
        personal_files.erase_file(file, self._search())


def _called(name: str | None) -> str:
    return f'"{name}"' if name else "without a name"


def _show(
    accounts: Iterable[AccountInfo], resumes: Sequence[StoredPerson], files: Sequence[PersonalFile]
) -> None:
    names = {account.id: account.name for account in accounts}
    for each in resumes:
        entry = each.stored.entry
        name = _called(entry.name)
        where = f"{names[each.account_id]}, created {instant(entry.created_at)} UTC"
        put(safe_text(f"resume  {each.id}  {name}, {where}"))
    words = {
        Action.ERASE: "to be erased",
        Action.REWRITE: "to be written without the person",
        Action.CANNOT: "cannot be changed; edit or delete it yourself",
    }
    for file in files:
        others = f", {counted(file.others, 'other resume')} kept" if file.others else ""
        put(f"file    {safe_text(str(file.path))}: {words[file.action]}{others}")
    if not resumes and not files:
        say("Nothing of this person was found.")


def _as_json(
    accounts: Iterable[AccountInfo],
    resumes: Sequence[StoredPerson],
    files: Sequence[PersonalFile],
    others: Mapping[str, int],
    *,
    erased: bool,
) -> dict[str, Any]:
    names = {account.id: account.name for account in accounts}
    return {
        "erased": erased,
        "resumes": [
            {
                "account": names[each.account_id],
                "id": each.id,
                "name": each.name,
                "createdAt": each.stored.entry.created_at,
            }
            for each in resumes
        ],
        "kept": sum(others.values()),
        "files": [
            {"path": str(file.path), "action": file.action, "others": file.others} for file in files
        ],
    }


def _export(
    output: OutputFile,
    settings: Settings,
    accounts: Iterable[AccountInfo],
    resumes: Sequence[StoredPerson],
    *,
    is_erased: bool,
) -> None:
    """Write the data that the person may request: each resume as JSON and PDF, with its times."""
    names = {account.id: account.name for account in accounts}
    history = [
        {
            "account": names[each.account_id],
            "id": each.id,
            "createdAt": each.stored.entry.created_at,
            "updatedAt": each.stored.entry.updated_at,
            "erasedAt": timestamp(system_clock()) if is_erased else None,
        }
        for each in resumes
    ]
    kinds = (ExportFormat.ANALYZER, ExportFormat.PDF)
    with output.opened() as file, ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr("history.json", json.dumps(history, indent=2) + "\n")
        for kind in kinds:
            with Exporter(kind, settings.format, home=settings.home) as exporter:
                for each in resumes:
                    try:
                        exported = exporter.export(each.stored)
                    except (TooLong, RenderingFailed) as error:
                        say(safe_text(f"Could not generate the PDF of resume {each.id}: {error}"))
                        continue
                    archive.writestr(exported.name_with_id, exported.body)
    say(safe_text(f"Wrote {output.path}."))
