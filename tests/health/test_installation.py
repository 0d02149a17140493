"""What `resumes doctor` and the Health screen find in a home, each with its remedy."""

import shutil
from pathlib import Path

import pytest

from resumes.clock import timestamp
from resumes.health import checks
from resumes.health.findings import Installation, Severity, remedy_for
from resumes.health.store_checks import check_sqlite
from resumes.rendering import fonts as drawing_fonts
from resumes.rendering.fonts import find_scripts, font_packages
from resumes.settings import Settings, load_settings
from resumes.store import Store, accounts, api_keys, forgotten, plans
from resumes.store.accounts import AccountInfo
from resumes.store.creation import create
from resumes.store.forgotten import Subject
from resumes.store.plans import PlanChange
from tests.health.conftest import MY_NAME, command_line, find
from tests.support.clocks import SteppingClock
from tests.support.resumes import a_mount, a_resume, mountinfo


def test_everything_is_looked_at_and_an_empty_store_is_well(installation: Installation) -> None:
    found = list(checks.iter_findings(installation))

    assert [one for one in found if one.severity is not Severity.OK] == []
    assert [one.subject for one in found] == [
        "settings", "home", "disk", "SQLite", "store", "size", "counters", "quota", "keys",
        "inbox", "files", "requests", "importer", "fonts",
    ]  # fmt: skip


# Settings, home, disk, SQLite


def test_bad_settings_are_a_finding(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("port = 'x'", encoding="ascii")
    bad = Installation(lambda: load_settings(home=tmp_path), installation.store, command_line)

    [finding] = checks.iter_findings(bad)

    assert (finding.subject, finding.severity) == ("settings", Severity.ERROR)


def test_a_broken_file_of_a_house_style_is_a_finding(
    installation: Installation, tmp_path: Path
) -> None:
    logo = tmp_path / "branding" / "acme" / "logo.svg"
    logo.parent.mkdir(parents=True)
    logo.write_text("<svg/>", encoding="ascii")

    [finding] = find(installation, "branding")

    assert finding.severity is Severity.WARNING
    assert finding.text == f"{logo}: not an SVG image; files are made without it"
    assert finding.remedy == "Correct the file: see docs/branding.md"


def test_the_analyzer_must_be_a_program(installation: Installation, tmp_path: Path) -> None:
    program = tmp_path / "analyze"
    settings = Settings(home=tmp_path, analyzer=(str(program), "{file}"))
    mine = Installation(lambda: settings, installation.store, command_line)

    [missing] = find(mine, "analyzer")
    program.touch()
    [plain] = find(mine, "analyzer")
    program.chmod(0o700)

    cannot = "The analyzer cannot be started:"
    assert (missing.text, missing.severity) == (f"{cannot} {program} was not found", Severity.ERROR)
    assert plain.text == f"{cannot} {program} is not an executable file"
    assert missing.remedy is not None
    [ready] = find(mine, "analyzer")
    assert (ready.text, ready.severity) == (str(program), Severity.OK)


def test_a_home_must_be_there_and_ours_alone(installation: Installation, tmp_path: Path) -> None:
    missing = checks.check_home(installation, tmp_path / "no")
    assert (missing.remedy, missing.command) == ("Create it with `resumes up`", "resumes up")
    home = tmp_path / "my home"
    home.mkdir(mode=0o755)
    assert checks.check_home(installation, home).command == f"chmod o-rwx '{home}'"
    home.chmod(0o700)
    assert checks.check_home(installation, home).severity is Severity.OK


def test_a_home_that_may_not_be_seen_is_a_finding(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refuse)
    monkeypatch.setattr(Path, "exists", lambda path: path == Path("/") or refuse(path))

    finding = checks.check_home(installation, tmp_path / "home")

    assert finding.text == f"this user cannot access {tmp_path / 'home'}"
    assert checks.check_disk(tmp_path / "home").text.endswith(" GiB free")


def test_a_full_disk_is_told(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checks.check_disk(tmp_path / "not" / "there").severity is Severity.OK
    usage = shutil.disk_usage(tmp_path)._replace(free=400 * 2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)

    [finding] = find(installation, "disk")

    assert finding.text == "0.4 GiB free"
    assert "Free up space" in (finding.remedy or "")


def test_a_file_that_a_host_shares_wants_a_look(tmp_path: Path) -> None:
    mounts = mountinfo(a_mount(str(tmp_path), "9p"))

    finding = check_sqlite(tmp_path / "resumes.db", mountinfo=mounts)

    assert finding.severity is Severity.WARNING
    assert "is on 9p, a folder shared by a host system" in finding.text


# Plans and keys


def test_full_accounts_are_led_to_the_smallest_plan_with_room(
    installation: Installation, store: Store
) -> None:
    for name, most in (("tiny", 1), ("middle", 3), ("free", 5), ("business", 5)):
        plans.set_plan_limits(store, PlanChange(name, max_resumes=most))
    for name, held in (("full", 1), ("over", 3), ("room", 0)):
        one = accounts.create_account(store, name, plan="free")
        create(store, one.id, [a_resume(str(number)) for number in range(held)])
        accounts.set_plan(store, name, "tiny")

    full, over = find(installation, "quota")

    assert full.severity is Severity.WARNING
    assert full.text.startswith("full is full (1 of 1, plan tiny)")
    assert full.command == "resumes accounts set-plan full middle"
    assert over.command in {
        f"resumes accounts set-plan over {name}" for name in ("free", "business")
    }
    for plan in plans.list_plans(store):
        plans.set_plan_limits(store, PlanChange(plan.name, max_resumes=1))
    full, over = find(installation, "quota")
    assert full.command == over.command == "resumes plans list"
    assert "raise the limit of its plan" in (full.remedy or "")


def test_a_plan_that_takes_listing_or_days_away_is_not_suggested(
    installation: Installation, store: Store
) -> None:
    for name, most, listing, days in (
        ("now", 1, True, 100),
        ("unlisted", 2, False, 100),
        ("shorter", 3, True, 99),
        ("longer", 4, True, 101),
    ):
        change = PlanChange(name, max_resumes=most, api_listing=listing, keep_days=days)
        plans.set_plan_limits(store, change)
    account = accounts.create_account(store, "full", plan="now")
    create(store, account.id, [a_resume()])

    [full] = find(installation, "quota")

    assert full.command == "resumes accounts set-plan full longer"
    plans.set_plan_limits(store, PlanChange("now", max_resumes=1, keep_days=None))
    plans.set_plan_limits(store, PlanChange("business", max_resumes=None, api_listing=False))
    [full] = find(installation, "quota")
    assert full.command == "resumes plans list"


def test_who_was_erased_is_counted_by_day_for_backups_that_were_made_before(
    installation: Installation, store: Store, clock: SteppingClock
) -> None:
    assert find(installation, "erased") == []
    for number in range(8):
        forgotten.remember(store, [Subject.of_email(f"{number}@example.org")])
        clock.advance(0 if number else 86_400)
    (told,) = find(installation, "erased")
    first, second = (timestamp(clock() - days * 86_400_000_000)[:10] for days in (1, 0))
    assert told.text == (
        f"8 persons (7 on {second}, 1 on {first}); backups that were made before still contain them"
    )


def test_resumes_that_no_service_erases_are_told(
    installation: Installation,
    store: Store,
    clock: SteppingClock,
    account: AccountInfo,
    inbox: Path,
) -> None:
    create(store, account.id, [a_resume("A"), a_resume("B")])
    filed = inbox / f"_done/{timestamp(clock())[:10]}/acme"
    filed.mkdir(parents=True)
    assert find(installation, "expiry") == []
    plans.set_plan_limits(store, PlanChange("free", 5, keep_days=30))
    (well,) = find(installation, "expiry")
    assert (well.severity, well.text) == (Severity.OK, "no resume is older than its plan allows")

    clock.advance(30 * 86_400 + 1)
    (due,) = find(installation, "expiry")
    assert (due.severity, due.text) == (Severity.OK, "2 resumes due, to be erased within the hour")
    assert not any(found.about == "_done" for found in find(installation, "inbox"))
    clock.advance(2 * 86_400)
    (overdue,) = find(installation, "expiry")
    assert (overdue.severity, overdue.command) == (Severity.WARNING, "resumes expire")
    assert overdue.text == "2 resumes older than the plan allows, 2 for more than a day"
    (old,) = (found for found in find(installation, "inbox") if found.about == "_done")
    assert "but its plan keeps them for 30 days" in old.text
    assert (old.severity, old.remedy) == (
        Severity.WARNING, "An importer deletes them: start one with `resumes up`",
    )  # fmt: skip


def test_a_key_that_was_never_shown_is_told_until_it_is_revoked(
    installation: Installation, store: Store, account: AccountInfo, clock: SteppingClock
) -> None:
    shown = api_keys.create_key(store, account.name)
    api_keys.mark_shown(store, shown.id)
    new = api_keys.create_key(store, account.name)
    clock.advance(600)
    [being_shown] = find(installation, "keys")
    assert (being_shown.severity, being_shown.text) == (Severity.OK, "2 active keys")
    clock.advance(1)

    [finding] = find(installation, "keys")

    assert finding.severity is Severity.WARNING
    assert finding.text == f"{new.id} of acme was never shown, so nobody can use it"
    assert finding.command == f"resumes keys revoke {new.id}"
    api_keys.revoke_key(store, new.id)
    assert [one.text for one in find(installation, "keys")] == ["1 active key"]


# What commands are called, whom a file belongs to, and words


def test_a_remedy_for_a_file_goes_by_who_asks(tmp_path: Path) -> None:
    other = 4_000_000_000
    path = tmp_path / "my file"
    path.touch(mode=0o000)

    assert remedy_for(path) == f"chmod u+rwX '{path}'"
    assert remedy_for(path, user_id=other) == f"Run this as its owner, {MY_NAME}"
    as_owner = f"Run this as its owner, {MY_NAME}, or chown it to {other}"
    assert remedy_for(tmp_path, user_id=other) == as_owner
    assert remedy_for(tmp_path).startswith("Find out why its file system is read-only")
    assert remedy_for(tmp_path / "no") == f"Give user {MY_NAME} access to its folder"


# Fonts


@pytest.fixture(autouse=True)
def _package_fonts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing_fonts, "SYSTEM_FONTS", ())


def test_scripts_without_a_font_are_named_with_the_packages_to_install(
    installation: Installation, store: Store, account: AccountInfo, settings: Settings
) -> None:
    names = ("山田 はな", "김서연", "สมชาย", "Ada")
    create(store, account.id, [a_resume(name=name) for name in names])

    [finding] = find(installation, "fonts")

    assert finding.severity is Severity.WARNING
    assert finding.text == (
        "some resumes are in Japanese, Korean and Thai, for which no font is installed: their PDFs show "
        "boxes"
    )
    assert finding.remedy == (
        f"Install fonts-noto-cjk and fonts-noto-core, or put a font into {settings.home / 'fonts'}"
    )


def test_letters_that_chinese_and_japanese_share_are_japanese_beside_kana() -> None:
    assert {script.name for script in find_scripts("職務経歴書")} == {"Chinese/Japanese"}
    assert {script.name for script in find_scripts("山田 ハナ")} == {"Japanese"}
    assert {script.name for script in find_scripts("山田 ハナ, 김")} == {"Japanese", "Korean"}
    assert find_scripts("Zoë, Олена, Ελένη, سلمى, דוד, प्रिया, ª, 👩‍🔬, 1️⃣") == {}
    assert font_packages("สมชาย 日本") == "fonts-noto-cjk and fonts-noto-core"
    assert font_packages("日本 🇫🇷") == "fonts-noto-cjk and fonts-noto-color-emoji"
    assert font_packages("\U0003fff0") == "fonts-noto-core"
