"""The lines of a form."""

import pytest
from textual.app import App, ComposeResult

from tests.tui.driving import lines
from tui.screens.plans.fields import LabelledField
from tui.widgets.fields import Choices, SafeInput

pytestmark = pytest.mark.anyio


class Form(App[int]):
    def compose(self) -> ComposeResult:
        yield LabelledField("Resumes", SafeInput(max_length=9))
        yield LabelledField("API listing", Choices(["no", "yes"], "yes"))


async def test_label_and_answer_share_one_line() -> None:
    app = Form()
    async with app.run_test() as pilot:
        await pilot.press("tab", "shift+tab", *"50")
        await pilot.pause()
        first, second, *_ = lines(app)

    assert first.split() == ["Resumes", "50"]
    assert second.split()[:3] == ["API", "listing", "yes"]
    assert first.index("50") == second.index("yes")
