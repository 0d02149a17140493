"""The command: `python -m tests.fuzz`."""

import argparse
import os
import re
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import tests.fuzz
from tests.fuzz.targets import TARGETS, Target

SITE: Final = Path(sys.prefix) / "fuzz"
ROOT: Final = Path(__file__).parents[2]
KEPT: Final = Path(tempfile.gettempdir()) / "resumes-fuzz"
MOST_SECONDS: Final = 20
"""For a single input, on top of what a check allows it."""

MOST_MEBIBYTES: Final = 1_024
"""Of memory, with all inputs that reached new code in it."""

_RUNS: Final = re.compile(r"stat::number_of_executed_units:\s+([0-9]+)")
_PEAK: Final = re.compile(r"stat::peak_rss_mb:\s+([0-9]+)")
_COVERED: Final = re.compile(r"\bcov: ([0-9]+) ")


class Fuzzed(NamedTuple):
    """What came of a target. `found` are the inputs that break a promise."""

    target: Target
    seed: int
    runs: int
    covered: int
    peak_mib: int
    found: list[Path]
    is_finished: bool
    log: Path


def main() -> None:
    """Ends with 1 when an input was found that breaks a promise."""
    options = _options()
    options.kept.mkdir(parents=True, exist_ok=True)
    print("| target | seed | inputs tried | places reached | memory, MiB | found |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    outcomes = []
    for name in options.only:
        outcome = _fuzz(TARGETS[name], options)
        print(_row(outcome), flush=True)
        outcomes.append(outcome)
    for outcome in outcomes:
        _explain(outcome)
    sys.exit(any(one.found or not one.is_finished for one in outcomes))


def _fuzz(target: Target, options: argparse.Namespace) -> Fuzzed:
    seed = options.seed or secrets.randbelow(2**31 - 1) + 1
    grown, log = options.kept / "grown" / target.name, options.kept / f"{target.name}.log"
    grown.mkdir(parents=True, exist_ok=True)
    prefix = options.kept / f"found-{target.name}-{seed}-"
    command = [
        sys.executable, "-m", "tests.fuzz.guided", target.name,
        f"-max_total_time={options.seconds}", f"-seed={seed}", f"-max_len={target.max_bytes}",
        f"-timeout={MOST_SECONDS}", f"-rss_limit_mb={MOST_MEBIBYTES}", f"-artifact_prefix={prefix}",
        "-print_final_stats=1", "-len_control=0", str(grown), str(target.folder),
    ]  # fmt: skip
    paths = os.pathsep.join([str(ROOT), str(options.site), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory(prefix="resumes-fuzz-") as folder, log.open("wb") as output:
        done = subprocess.run(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": paths, "TMPDIR": folder},
            check=False,
        )
    said = log.read_text(errors="replace")
    return Fuzzed(
        target, seed, _last(_RUNS, said), _last(_COVERED, said), _last(_PEAK, said),
        sorted(prefix.parent.glob(f"{prefix.name}*")), done.returncode == 0, log,
    )  # fmt: skip


def _last(number: re.Pattern[str], said: str) -> int:
    found = number.findall(said)
    return int(found[-1]) if found else 0


def _row(one: Fuzzed) -> str:
    found = len(one.found) if one.is_finished or one.found else "did not finish"
    return (
        f"| {one.target.name} | {one.seed} | {one.runs:,} | {one.covered:,} | {one.peak_mib:,} "
        f"| {found} |"
    )


def _explain(one: Fuzzed) -> None:
    if one.is_finished and not one.found:
        return
    print(f"\n{one.target.name}: {one.log} says what happened.")
    for path in one.found:
        print(f"  {path}\n  as a test: cp {path} {one.target.folder}/found-WHAT")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=tests.fuzz.__doc__)
    parser.add_argument("--seconds", type=int, default=600, help="for each target [600]")
    parser.add_argument("--seed", type=int, help="repeats a run [a new one for each target]")
    parser.add_argument(
        "--only", metavar="NAME,NAME", type=_names, default=[*TARGETS],
        help=f"of {', '.join(TARGETS)} [all]",
    )  # fmt: skip
    parser.add_argument(
        "--kept", type=Path, default=KEPT, metavar="DIR",
        help="logs, inputs that reached new code, and those that failed [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--site", type=Path, default=SITE, metavar="DIR",
        help="where requirements/fuzz.txt is installed [%(default)s]",
    )  # fmt: skip
    options = parser.parse_args()
    if not (options.site / "atheris").is_dir():
        parser.error(f"atheris is not in {options.site}: run `make fuzz`, which installs it")
    return options


def _names(value: str) -> list[str]:
    names = value.split(",")
    if unknown := [name for name in names if name not in TARGETS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(TARGETS)}")
    return names


if __name__ == "__main__":
    main()
