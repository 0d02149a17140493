"""The units, the container file and the package: what tools can say of them without a machine to try them on."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import resumes
from tests.support.pages import steps

pytestmark = pytest.mark.docs

UNITS = (
    "resumes.service",
    "resumes-watch.service",
    "resumes-backup.service",
    "resumes-backup.timer",
)
INSTALLED = "/opt/resumes/.venv/bin/resumes"


def beside_python(name: str) -> str:
    path = Path(sys.executable).with_name(name)
    assert path.exists(), f"{name} comes with the development requirements"
    return str(path)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_units_are_well_formed(repository: Path, tmp_path: Path) -> None:
    for name in UNITS:
        unit = (repository / "deploy" / name).read_text()
        (tmp_path / name).write_text(unit.replace(INSTALLED, beside_python("resumes")))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in UNITS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_units_run_commands_that_there_are(repository: Path) -> None:
    for name in UNITS[:3]:
        unit = (repository / "deploy" / name).read_text()
        (line,) = re.findall(r"^ExecStart=(.+)$", unit, re.MULTILINE)
        program, *words = line.split()
        assert program == INSTALLED
        options = [word for word in words if word.startswith("--")]
        path = [word for word in words if re.fullmatch("[a-z]+", word)]
        told = CliRunner().invoke(resumes, [*path, "--help"])
        assert told.exit_code == 0, told.output
        assert all(option in told.output for option in options)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders to others")
def test_who_is_in_the_group_drops_files_into_folders_of_accounts_and_nowhere_else(
    repository: Path,
) -> None:
    typed = [step.command for step in steps(repository, "docs/guides/one-machine.md")]
    with tempfile.TemporaryDirectory() as srv:
        Path(srv).chmod(0o755)
        inbox = Path(srv, "resumes-inbox")
        for line in (line for line in typed if "/srv/resumes-inbox" in line):
            numbers = line.replace("-o resumes -g analyzers", "-o 20001 -g 20002")
            subprocess.run(numbers.replace("/srv", srv).split(), check=True)

        def drops(path: str, *groups: int) -> bool:
            return not subprocess.run(
                ["touch", inbox / path], user=20003, group=20003, extra_groups=groups, check=False
            ).returncode

        assert drops("default/a.json", 20002)
        assert (inbox / "default" / "a.json").stat().st_gid == 20002
        assert not drops("a.json", 20002)
        assert not drops("default/b.json")


@pytest.mark.parametrize(
    ("unit", "written"),
    [
        ("resumes.service", {"StateDirectory=resumes"}),
        ("resumes-watch.service", {"StateDirectory=resumes", "ReadWritePaths=/srv/resumes-inbox"}),
        ("resumes-backup.service", {"StateDirectory=resumes resumes-backups"}),
    ],
)
def test_a_unit_may_write_to_its_own_folders_alone_and_only_its_user_reads_them(
    repository: Path, unit: str, written: set[str]
) -> None:
    lines = (repository / "deploy" / unit).read_text().splitlines()
    assert {"ProtectSystem=strict", "ProtectHome=yes", "StateDirectoryMode=0700"} <= {*lines}
    assert {"LimitCORE=0", "UMask=0077"} <= {*lines}  # nor is anything of its memory left
    # A unit that runs analyzers goes on when the kernel kills one that used all memory.
    assert ("OOMPolicy=continue" in lines) is (unit != "resumes-backup.service")
    places = re.compile("(ReadWrite|Bind)Paths=|(State|Cache|Logs|Configuration|Runtime)Directory=")
    assert {line for line in lines if places.match(line)} == written


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", ["resumes.service", "resumes-watch.service"])
def test_a_unit_is_exposed_as_little_as_the_guide_says(repository: Path, unit: str) -> None:
    words = ["systemd-analyze", "security", "--offline=yes", "--no-pager"]
    done = subprocess.run(
        [*words, repository / "deploy" / unit], capture_output=True, text=True, check=True
    )
    (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    guide = (repository / "docs" / "guides" / "one-machine.md").read_text()
    (told,) = re.findall(r"\(exposure\s+level\s+([\d.]+) ", guide)
    assert float(exposure) <= float(told)  # by the weights of systemd 252


def test_the_container_file_pleases_the_linter_and_takes_what_there_is(repository: Path) -> None:
    path = repository / "deploy" / "Containerfile"
    done = subprocess.run([beside_python("hadolint"), path], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    for line in re.findall(r"^COPY (?!--from)(.+)$", path.read_text(), re.MULTILINE):
        *sources, _ = line.split()
        for source in sources:
            assert (repository / source).exists(), source


@pytest.mark.slow
def test_the_package_has_what_belongs_to_it(repository: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=repository, check=True, capture_output=True)
    (wheel,), (source,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        installed = archive.namelist()
    with tarfile.open(source) as archive:
        sources = [name.partition("/")[2] for name in archive.getnames()]

    packages = {path.name for path in (repository / "src").iterdir() if path.is_dir()}
    (info,) = {name.partition("/")[0] for name in installed} - packages
    assert info.endswith(".dist-info")
    assert {f"{package}/py.typed" for package in packages} <= {*installed}
    fonts = "src/resumes/rendering/fonts"
    for licence in ("LICENSE", f"{fonts}/OFL-1.1.txt", f"{fonts}/Apache-2.0.txt"):
        assert f"{info}/licenses/{licence}" in installed
        assert licence in sources
    assert {"deploy/Containerfile", "Makefile", "tests/conftest.py"} <= {*sources}
    assert not [name for name in installed + sources if re.search(r"pycache|\.venv|\.db$", name)]
