"""The process that draws: what it may, when it ends, and what becomes of the page that it has."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

import pytest

from resumes.rendering import Renderer, RenderingFailed, compose
from resumes.rendering.fonts import font_folders, version
from tests.support.documents import a_document, with_section
from tests.support.pdfs import find_cjk_fonts
from tests.support.waiting import drawing_children, is_running, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")

PAGE: Final = compose(a_document(), "0" * 24)
LARGE: Final = compose(with_section("summaries", *[{"text": "Builds. " * 2_400}] * 8), "0" * 24)
"""More than a pipe holds."""


MakeRenderer = Callable[..., Renderer]


@pytest.fixture
def a_renderer() -> Iterator[MakeRenderer]:
    """Makes renderers, of which no child is left in the end: `a_renderer(timeout_s=1)`."""
    others = drawing_children()
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(closing(Renderer([], **options)))
    assert drawing_children() <= others


class Child:
    """The child of a renderer, which has drawn a page."""

    def __init__(self, renderer: Renderer) -> None:
        others = drawing_children()
        self.pdf = renderer.render(PAGE).body
        (self.id,) = drawing_children() - others

    def signal(self, number: int) -> None:
        os.kill(self.id, number)

    def is_there(self) -> bool:
        return self.id in drawing_children()


@pytest.mark.parametrize("page", [PAGE, LARGE], ids=["small", "large"])
def test_a_page_that_takes_too_long_fails_alone(
    a_renderer: MakeRenderer, page: dict[str, Any]
) -> None:
    renderer = a_renderer(timeout_s=60)
    child = Child(renderer)
    child.signal(signal.SIGSTOP)  # neither takes the page nor answers
    renderer.timeout_s = 0.05
    with pytest.raises(RenderingFailed, match=r"longer than 0\.05 s"):
        renderer.render(page)
    assert not child.is_there()
    renderer.timeout_s = 60
    assert renderer.render(PAGE).body == child.pdf


def test_a_child_that_was_killed_is_replaced(
    a_renderer: MakeRenderer, caplog: pytest.LogCaptureFixture
) -> None:
    renderer = a_renderer()
    child = Child(renderer)
    child.signal(signal.SIGKILL)
    assert renderer.render(PAGE).body == child.pdf
    assert "retrying in a new one" in caplog.text


def test_two_children_that_end_are_all_that_a_page_gets(
    a_renderer: MakeRenderer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renderer = a_renderer()
    starts = tmp_path / "starts"
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho x >> {starts}\n")
    program.chmod(0o700)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(program))
        with pytest.raises(RenderingFailed, match="ended"):
            renderer.render(LARGE)
        assert starts.read_text() == "x\nx\n"
        patch.setattr(sys, "executable", "/nonexistent")
        with pytest.raises(RenderingFailed, match="ended"):
            renderer.render(PAGE)
    assert renderer.render(PAGE).missing is None


def test_a_child_without_work_ends_and_another_draws_the_next_page(
    a_renderer: MakeRenderer,
) -> None:
    others = drawing_children()
    renderer = a_renderer(idle_s=0.01)
    first = renderer.render(LARGE).body
    wait_until(lambda: drawing_children() <= others)
    assert renderer.render(LARGE).body == first


def test_close_ends_a_child_that_draws_and_nothing_is_drawn_after_it(
    a_renderer: MakeRenderer,
) -> None:
    renderer = a_renderer(timeout_s=60)
    child = Child(renderer)
    child.signal(signal.SIGSTOP)
    failures = list[str]()

    def draw() -> None:
        try:
            renderer.render(LARGE)
        except RenderingFailed as error:
            failures.append(str(error))

    thread = threading.Thread(target=draw)
    thread.start()
    wait_until(renderer._turn.locked)
    renderer.close()
    renderer.close()
    thread.join(30)
    assert failures == ["The renderer is closed"]
    assert not child.is_there()
    with pytest.raises(RenderingFailed, match="closed"):
        renderer.render(PAGE)


def test_the_child_ends_with_its_parent() -> None:
    script = (
        "import os; from resumes.rendering import Renderer, compose;"
        "from tests.support.waiting import drawing_children;"
        "Renderer([]).render(compose({'header': {}, 'sections': {}}, '0' * 24));"
        "print(*drawing_children(), flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True
    )
    child = int(done.stdout)
    wait_until(lambda: not is_running(child))


@pytest.mark.slow
def test_a_page_that_needs_more_memory_ends_the_child_alone(
    a_renderer: MakeRenderer, capfd: pytest.CaptureFixture[str]
) -> None:
    renderer = a_renderer(timeout_s=120)
    page = compose(with_section("skills", {"tags": ["x"]}), "0" * 24)
    page["columns"][0][0]["items"] *= 400_000  # as no document that is taken has
    with pytest.raises(RenderingFailed, match="ended"):
        renderer.render(page)
    assert renderer.render(PAGE).missing is None
    assert capfd.readouterr() == ("", "")  # nor does it say anything where a terminal may be


def test_the_child_has_limits_gives_way_to_the_service_and_needs_about_100_mb(
    a_renderer: MakeRenderer,
) -> None:
    child = Child(a_renderer())
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, child.id) == min(19, niceness + 5)
    status = Path(f"/proc/{child.id}/status").read_text()
    assert int(status.partition("VmRSS:")[2].split()[0]) < 150_000
    limits = Path(f"/proc/{child.id}/limits").read_text()
    said = dict(re.findall(r"^(Max [a-z ]+?) {2,}(\S+)", limits, re.MULTILINE))
    assert said["Max address space"] == str(768 * 1024 * 1024)
    assert said["Max core file size"] == "0"
    assert said["Max open files"] == "128"


def test_a_page_that_cannot_be_drawn_is_an_error_of_its_own(a_renderer: MakeRenderer) -> None:
    renderer = a_renderer()
    child = Child(renderer)
    with pytest.raises(RenderingFailed):
        renderer.render({**PAGE, "layout": "none"})
    assert renderer.render(PAGE).body == child.pdf
    assert child.is_there()


def test_pages_of_many_threads_are_drawn_one_after_the_other(a_renderer: MakeRenderer) -> None:
    renderer = a_renderer()
    child = Child(renderer)
    drawn = list[bytes]()
    threads = [
        threading.Thread(target=lambda: drawn.append(renderer.render(PAGE).body)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert drawn == [child.pdf] * 8
    assert child.is_there()


def test_a_page_whose_turn_comes_too_late_is_not_drawn_and_the_next_is(
    a_renderer: MakeRenderer,
) -> None:
    renderer = a_renderer()
    with pytest.raises(RenderingFailed, match="did not start"):
        renderer.render(PAGE, ends_at=time.monotonic())
    assert renderer.render(PAGE).body


# Fonts


def test_a_text_that_no_font_has_is_named(tmp_path: Path) -> None:
    page = compose(
        with_section("summaries", {"text": "Builds \N{EGYPTIAN HIEROGLYPH A001} bridges"}), "0" * 24
    )
    with closing(Renderer([tmp_path])) as renderer:
        assert renderer.render(page).missing == "\N{EGYPTIAN HIEROGLYPH A001}"
        assert renderer.render(compose(a_document(), "0" * 24)).missing is None


@pytest.mark.skipif(not find_cjk_fonts(), reason="no CJK font is installed")
def test_a_font_that_is_added_is_used_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resumes.rendering.fonts.VERSION_INTERVAL_S", 0)
    page = compose(with_section("summaries", {"text": "数据"}), "0" * 24)
    (font, *_) = sorted(Path("/usr/share/fonts").rglob("NotoSansCJK-Regular*"))
    with closing(Renderer([tmp_path])) as renderer:
        assert renderer.render(page).missing is not None
        (tmp_path / font.name).symlink_to(font)
        assert renderer.render(page).missing is None


def test_fonts_of_the_user_come_before_those_of_the_system(tmp_path: Path) -> None:
    assert font_folders(tmp_path)[0] == tmp_path / "fonts"


def test_a_child_outlives_the_thread_that_started_it(a_renderer: MakeRenderer) -> None:
    renderer = a_renderer()
    children = list[Child]()
    thread = threading.Thread(target=lambda: children.append(Child(renderer)))
    thread.start()
    thread.join()
    renderer.render(PAGE)
    assert children[0].is_there()


def test_a_font_that_is_added_changes_the_version_and_a_broken_link_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resumes.rendering.fonts.VERSION_INTERVAL_S", 0)
    before = version([tmp_path])
    (tmp_path / "gone.ttf").symlink_to("nothing")
    assert version([tmp_path]) == before
    (tmp_path / "new.ttf").write_bytes(b"x")
    assert version([tmp_path]) != before
