from collections.abc import Callable
from pathlib import Path

from importer.steps import Step
from resumes.store.accounts import AccountInfo
from tests.importer.builders import MakeImporter, drop


def test_every_step_is_announced(
    root: Path, an_account: Callable[..., AccountInfo], an_importer: MakeImporter
) -> None:
    account = an_account()
    drop(root, f".work/dead/{account.id}/{'1' * 24}")
    drop(root, "ana/bad.json", b"{}")
    announced: list[Step] = []
    an_importer(settle_s=0, observe=announced.append).round()
    assert set(announced) == set(Step)
