"""The command: `python -m tests.fuzz`."""

import argparse
import os
import re
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

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


def main() -> None:
    """Ends with 1 when an input was found that breaks a promise."""
    options = _options()
    options.kept.mkdir(parents=True, exist_ok=True)
    print("| target | seed | inputs tried | places reached | memory, MiB | found |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    wrong = [text for name in options.only if (text := _fuzz(TARGETS[name], options))]
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    sys.exit(bool(wrong))


def _fuzz(target: Target, options: argparse.Namespace) -> str:
    """The target's row is printed; what is wrong, and how to have it as a test, is returned."""
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
    found = sorted(prefix.parent.glob(f"{prefix.name}*"))
    result = len(found) if found or done.returncode == 0 else "did not finish"
    numbers = (f"{int([0, *number.findall(said)][-1]):,}" for number in (_RUNS, _COVERED, _PEAK))
    print("|", " | ".join([target.name, f"{seed}", *numbers, f"{result}"]), "|", flush=True)
    if result == 0:
        return ""
    tests = [f"  {path}\n  as a test: cp {path} {target.folder}/found-WHAT" for path in found]
    return "\n".join([f"\n{target.name}: {log} says what happened.", *tests])


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
