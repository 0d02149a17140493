"""The user's analyzer as a process: what it gets, how it ends, and that nothing of it stays."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from resumes import external_analyzer
from resumes.external_analyzer import AnalysisFailed, ExternalAnalyzer, Failure
from resumes.settings import Settings
from tests.support.analyzers import an_analyzer, private_folders, told
from tests.support.resumes import a_document
from tests.support.waiting import is_running, wait_until

pytestmark = pytest.mark.usefixtures("temporary")

PDF = b"%PDF-1.7 of a person"


def run(command: list[str], timeout_s: float = 60, **arguments: Any) -> bytes:
    settings = Settings(analyzer=command, analyzer_timeout_s=timeout_s, max_body_bytes=10_000)
    with tempfile.TemporaryFile() as source:
        source.write(PDF)
        source.seek(0)
        source.read(4)
        return ExternalAnalyzer(settings).run(source, ".pdf", **arguments).body


def refusal(command: list[str], reason: Failure, timeout_s: float = 60, **arguments: Any) -> str:
    with pytest.raises(AnalysisFailed) as failed:
        run(command, timeout_s, **arguments)
    assert failed.value.reason is reason
    return failed.value.message


def test_the_analyzer_gets_a_copy_in_a_private_folder_and_little_else(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_DATABASE", "postgresql://secret")
    monkeypatch.setenv("LANG", "pt_PT.UTF-8")
    code = """
tell("file", FILE)
tell("bytes", open(FILE).read())
tell("cwd", os.getcwd())
tell("listing", os.listdir())
tell("mode", oct(os.stat(".").st_mode))
tell("input", repr(sys.stdin.read()))
tell("names", sorted(set(os.environ) - {"LC_CTYPE"}))
tell("lang", os.environ["LANG"])
tell("tmp", tempfile.gettempdir())
tell("nice", os.nice(0))
if os.path.exists("/proc/self/autogroup"): tell("group", open("/proc/self/autogroup").read().split()[-1])
tell("oom", open("/proc/self/oom_score_adj").read().strip())
tell("memory", resource.getrlimit(resource.RLIMIT_DATA)[0])
tell("files", len(os.listdir("/proc/self/fd")) - 1)
open(FILE, "w").write("changed")
os.mkdir("left")
print(RESUME)
"""

    assert run(an_analyzer(tmp_path, code)).strip() == a_document()

    [file], [cwd] = told(tmp_path, "file"), told(tmp_path, "cwd")
    assert file == f"{cwd}/resume.pdf"
    assert Path(cwd).parent == temporary
    assert told(tmp_path, "bytes") == [PDF.decode()]
    assert told(tmp_path, "listing") == ["['resume.pdf']"]
    assert told(tmp_path, "mode") == ["0o40700"]
    assert told(tmp_path, "input") == ["''"]
    allowed = {"HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ"}
    assert set(eval(told(tmp_path, "names")[0])) <= allowed
    assert told(tmp_path, "lang") == ["pt_PT.UTF-8"]
    assert told(tmp_path, "tmp") == [cwd]
    assert int(told(tmp_path, "nice")[0]) >= 10
    assert told(tmp_path, "group") in ([], ["10"])
    assert told(tmp_path, "files") == ["3"]
    assert told(tmp_path, "oom") == ["1000"]
    assert told(tmp_path, "memory") == [str(4 * 1024**3)]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "sys.exit('Cannot read\\n\\x1b[31mthis')",
            r"The analyzer failed with exit code 1: Cannot read \x1b[31mthis",
        ),
        ("print(RESUME); sys.exit(3)", "The analyzer failed with exit code 3"),
        ("print(RESUME, flush=True); os.abort()", "The analyzer ended by signal 6"),
        ("os.kill(os.getpid(), 9)", "The analyzer ended by signal 9, as when memory runs out"),
        ("print(' ')", "The analyzer wrote no output"),
        ("sys.stderr.write('x' * 100_000 + ' end'); sys.exit(2)", f"code 2: {'x' * 496} end"),
    ],
    ids=["exit", "output", "signal", "killed", "nothing", "long"],
)
def test_a_refusal_tells_how_it_ended_and_what_it_said(
    tmp_path: Path, code: str, message: str
) -> None:
    assert refusal(an_analyzer(tmp_path, code), Failure.FAILED).endswith(message)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit all data")
def test_memory_is_bounded_for_each_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_analyzer, "MEMORY_MIB", 200)
    hungry = "kept = []\nwhile True: kept.append(b'x' * 10_000_000)"
    message = refusal(an_analyzer(tmp_path, hungry), Failure.FAILED)
    said = r"exit code 1 when it had used \d{3} MiB of memory: .*MemoryError"
    assert re.fullmatch(f"The analyzer failed with {said}", message), message
    raising = (
        "resource.setrlimit(resource.RLIMIT_DATA, (-1, -1)); b'x' * 300_000_000; print(RESUME)"
    )
    assert run(an_analyzer(tmp_path, raising)).strip() == a_document()


def test_output_is_bounded(tmp_path: Path) -> None:
    flood = "while True: sys.stdout.write('x' * 10_000)"
    message = refusal(an_analyzer(tmp_path, flood), Failure.TOO_MUCH_OUTPUT)
    assert message == "The analyzer wrote more than 75536 bytes and was stopped"
    assert len(run(an_analyzer(tmp_path, "print('x' * 75_535)"))) == 75_536


@pytest.mark.slow
@pytest.mark.parametrize(
    "behavior",
    [
        "",
        "for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)",
        "while True: sys.stderr.write('x' * 10_000); tell('pid', os.getpid())",
    ],
    ids=["sleeps", "ignores", "floods"],
)
def test_an_analyzer_that_does_not_finish_is_killed(tmp_path: Path, behavior: str) -> None:
    code = f"tell('pid', os.getpid())\n{behavior}\ntime.sleep(600)"

    message = refusal(an_analyzer(tmp_path, code), Failure.TIMEOUT, timeout_s=4)

    assert message.startswith("The analyzer did not finish within 4 s and was stopped")
    assert not is_running(int(told(tmp_path, "pid")[0]))


FORKS_AWAY = """
for number in range(3): fork_away()
subprocess.Popen(["sleep", "600"])
while len(open(os.path.join(os.path.dirname(sys.argv[0]), "pid")).readlines()) < 3:
    time.sleep(0.01)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems know no subreaper")
@pytest.mark.parametrize("ends", ["print(RESUME)", "time.sleep(600)"])
def test_processes_that_fork_away_are_ended_too(tmp_path: Path, ends: str) -> None:
    command = an_analyzer(tmp_path, "tell('pid', os.getpid())" + FORKS_AWAY + ends)
    if "print" in ends:
        assert run(command).strip() == a_document()
    else:
        refusal(command, Failure.TIMEOUT, timeout_s=3)
    pids = told(tmp_path, "pid")
    assert len(pids) >= 3
    assert not any(is_running(int(pid)) for pid in pids)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems know no subreaper")
def test_thousands_of_processes_that_have_ended_do_not_delay_the_output() -> None:
    leave_them = "i=0; while [ $i -lt 3000 ]; do (: &); i=$((i + 1)); done"
    assert run(["/bin/sh", "-c", f'{leave_them}; cat "$1"', "sh", "{file}"]) == PDF


def test_a_run_is_ended_when_it_is_cancelled(tmp_path: Path) -> None:
    cancelled = threading.Event()
    command = an_analyzer(tmp_path, "tell('pid', os.getpid()); time.sleep(600)")

    def cancel() -> None:
        wait_until(lambda: told(tmp_path, "pid"))
        cancelled.set()

    thread = threading.Thread(target=cancel)
    thread.start()
    refusal(command, Failure.CANCELLED, is_cancelled=cancelled.is_set)
    thread.join()
    assert not is_running(int(told(tmp_path, "pid")[0]))


OWNER = """
import sys, tempfile
from resumes.external_analyzer import ExternalAnalyzer
from resumes.settings import Settings
tempfile.tempdir = sys.argv[1]
with tempfile.TemporaryFile() as source:
    ExternalAnalyzer(Settings(analyzer=sys.argv[2:])).run(source, ".pdf")
"""


@pytest.mark.parametrize("killed", ["service", "group"])
def test_nothing_is_left_when_the_service_is_killed(
    tmp_path: Path, temporary: Path, killed: str
) -> None:
    code = "tell('pid', os.getpid()); tell('guard', os.getppid())\ntime.sleep(600)"
    command = an_analyzer(tmp_path, code)
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(temporary), *command])
    wait_until(lambda: told(tmp_path, "guard"))
    pid, guard = (int(told(tmp_path, name)[0]) for name in ("pid", "guard"))

    owner.kill()
    if killed == "group":
        os.kill(guard, signal.SIGKILL)
    owner.wait()

    wait_until(lambda: not (is_running(pid) or is_running(guard)))
    if killed == "group":  # the next service removes what the guard could not
        [name] = private_folders(temporary)
        ExternalAnalyzer(Settings(analyzer=command))
        assert private_folders(temporary) == [name]  # perhaps of one that starts now
        before = time.time() - 120
        os.utime(temporary / name, (before, before))
        ExternalAnalyzer(Settings(analyzer=command))


def test_the_folder_of_a_running_analyzer_is_left_alone(tmp_path: Path, temporary: Path) -> None:
    command = an_analyzer(
        tmp_path,
        "os.utime('.', (1, 1)); tell('pid', 1)\n"
        f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)\n"
        "open(FILE).read(); print(RESUME)",
    )
    outputs: list[bytes] = []
    thread = threading.Thread(target=lambda: outputs.append(run(command)))
    thread.start()
    wait_until(lambda: told(tmp_path, "pid"))
    ExternalAnalyzer(Settings(analyzer=command))
    (tmp_path / "go").touch()
    thread.join()
    assert outputs[0].strip() == a_document()


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="util-linux is not installed")
def test_what_the_analyzer_may_not_write_to_is_removed_too(tmp_path: Path, temporary: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o755)
    code = f"""
os.makedirs("a/b")
open("a/b/page", "w")
os.symlink({str(kept)!r}, "a/link")
for folder in ("a/b", "a", "."): os.chmod(folder, 0)
print(RESUME)
"""
    unprivileged = ["setpriv", "--bounding-set", "-all"] if os.geteuid() == 0 else []
    owner = [sys.executable, "-c", OWNER, str(temporary), *an_analyzer(tmp_path, code)]
    subprocess.run([*unprivileged, *owner], check=True)
    assert private_folders(temporary) == []
    assert kept.stat().st_mode & 0o777 == 0o755


def test_folders_of_any_depth_are_removed(tmp_path: Path, temporary: Path) -> None:
    code = """
for number in range(3000):
    os.mkdir("inner")
    os.chdir("inner")
open("page", "w")
print(RESUME)
"""
    assert run(an_analyzer(tmp_path, code)).strip() == a_document()
    assert private_folders(temporary) == []


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path, temporary: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o755)
    (kept / "page").touch()
    code = f"""
folder = os.getcwd()
os.rename(folder, {str(tmp_path / "moved")!r})
os.symlink({str(kept)!r}, folder)
print(RESUME)
"""
    assert run(an_analyzer(tmp_path, code)).strip() == a_document()
    assert private_folders(temporary) == []
    assert kept.stat().st_mode & 0o777 == 0o755
    assert (kept / "page").exists()


def test_a_command_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    broken = tmp_path / "broken"
    broken.write_text("#!/nowhere/python\n")
    broken.chmod(0o700)
    for command, why in (
        ("nowhere-to-be-found", "nowhere-to-be-found was not found"),
        (str(tmp_path / "none"), f"{tmp_path}/none was not found"),
        (str(plain), f"{plain} is not an executable file"),
        (str(broken), "No such file or directory"),
        (name := f"/{'x' * 256}", f"{name}: File name too long"),
    ):
        message = refusal([command, "{file}"], Failure.CANNOT_START)
        assert message == f"The analyzer cannot be started: {why}"
