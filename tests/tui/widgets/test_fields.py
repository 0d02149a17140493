"""What forms are made of."""

import pytest
from textual.app import App, ComposeResult

from tests.tui.builders import HOSTILE
from tests.tui.driving import lines
from tui.widgets.fields import Choices, LabelledField, SafeInput

pytestmark = pytest.mark.anyio


class Form(App[int]):
    def compose(self) -> ComposeResult:
        yield SafeInput(max_length=100)
        yield Choices(["ana", "[b]zoe"], "[b]zoe")


async def test_control_characters_do_not_enter_an_input() -> None:
    app = Form()
    async with app.run_test():
        app.query_one(SafeInput).value = HOSTILE

        assert app.query_one(SafeInput).value.isprintable()


async def test_the_preset_is_chosen_until_another_one_is() -> None:
    app = Form()
    async with app.run_test():
        choices = app.query_one(Choices)
        assert choices.chosen == "[b]zoe"

        choices.value = "ana"
        assert choices.chosen == "ana"


class LabelledForm(App[int]):
    def compose(self) -> ComposeResult:
        yield LabelledField("Resumes", SafeInput(max_length=9))
        yield LabelledField("API listing", Choices(["no", "yes"], "yes"))


async def test_label_and_answer_share_one_line() -> None:
    app = LabelledForm()
    async with app.run_test() as pilot:
        await pilot.press("tab", "shift+tab", *"50")
        await pilot.pause()
        first, second, *_ = lines(app)

    assert first.split() == ["Resumes", "50"]
    assert second.split()[:3] == ["API", "listing", "yes"]
    assert first.index("50") == second.index("yes")
