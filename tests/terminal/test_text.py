"""Text from data draws itself and does nothing: what makes it safe, and that no other way leads to the screen."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.content import Content

import tui
from resumes.text import is_harmless
from tests.support.terminal.builders import HOSTILE
from tui.text import joined, quota_bar, safe, safe_lines, safe_text
from tui.widgets.text_pane import Paragraph, wrapped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada Lovelace", "Ada Lovelace"),
        ("a[/b]c [@click=app.quit]x[/]", "a[/b]c [@click=app.quit]x[/]"),
        ("\x1b]52;c;AAAA\x07", "\ufffd]52;c;AAAA"),
        ("\x9b2J\x90q\x9d0;t", "\ufffd2J\ufffdq\ufffd0;t"),
        ("one\ntwo\u2028three", "one⏎two⏎three"),
        ("a\tb", "a b"),
        ("\u202egnp.exe\u2066\u200e\u061c", "gnp.exe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("\ud800", "\ufffd"),
        ("tag\U000e0041", "tag"),
        ("soft\xadhyphen", "softhyphen"),
        ("private\ue000", "private\ufffd"),
    ],
)
def test_what_terminals_act_upon_is_dropped_or_made_visible(text: str, expected: str) -> None:
    assert safe_text(text) == expected


@pytest.mark.parametrize("name", ["می\u200cروم", "क्\u200dष", "👩\u200d🚀", "山田", "Zoë"])
def test_joiners_that_names_need_stay(name: str) -> None:
    assert safe_text(name) == name


@given(st.text(st.characters(exclude_categories=[])))
def test_whatever_the_text_what_is_shown_is_harmless(text: str) -> None:
    assert is_harmless(safe_text(text))


def test_what_is_safe_stays_as_it_is() -> None:
    once = safe_text(HOSTILE)

    assert safe_text(once) == once


def test_lines_end_where_any_system_ends_them() -> None:
    assert safe_lines("a\r\nb\nc\rd\u2029e") == ["a", "b", "c", "d", "e"]
    assert safe_lines("") == [""]


def test_content_knows_no_markup() -> None:
    content = safe("[bold]x[/bold] [@click=app.quit]y[/]")

    assert content.plain == "[bold]x[/bold] [@click=app.quit]y[/]"
    assert content.spans == []


def test_parts_keep_their_styles() -> None:
    both = joined([safe("a", "bold"), safe("b")], by=" · ")

    assert both.plain == "a · b"
    assert [(span.start, span.end) for span in both.spans] == [(0, 1)]
    assert isinstance(both, Content)


# No string reaches a widget by another way.


ROOT = Path(tui.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))


SINKS = frozenset(
    {
        "Static", "Label", "Button", "Option", "OptionList", "Markdown", "Tree", "DataTable", "Log",
        "RichLog", "TextArea", "Collapsible", "TabPane", "Header", "Placeholder", "Link", "Pretty",
    }
)  # fmt: skip
"""Textual's widgets that take a string as markup, or draw it raw."""


CONTENT_MAKERS = frozenset({"Content", "from_markup", "from_text", "from_rich_text", "assemble"})
CONTENT_TAKERS = frozenset({"Note", "TextButton", "Paragraph", "show", "update", "say_when_empty"})
TEXT_ATTRIBUTES = frozenset({"tooltip", "title", "sub_title", "renderable"})
TITLES = frozenset({"border_title", "border_subtitle"})
TITLE_MAKERS = frozenset({"safe", "joined", "view_tabs", "heading"})
"""Functions that return Content; a string in a title would be read as markup."""


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def called(node: ast.Call) -> str:
    function = node.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def makes_a_string(node: ast.expr) -> bool:
    """An f-string, a literal, a concatenation or a call of `str` or `format`."""
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        return makes_a_string(node.left) or makes_a_string(node.right)
    return isinstance(node, ast.Call) and called(node) in {"str", "format", "repr", "join_text"}


def test_toasts_take_no_markup() -> None:
    calls = [
        node
        for node in nodes(ROOT / "text.py")
        if isinstance(node, ast.Call) and called(node) == "notify"
    ]

    assert calls
    for call in calls:
        markup = {word.arg: word.value for word in call.keywords}["markup"]
        assert isinstance(markup, ast.Constant)
        assert markup.value is False


def test_no_string_reaches_a_widget_but_as_content() -> None:
    assert [breach for path in SOURCES for breach in breaches(path)] == []


def test_the_rule_sees_a_breach(tmp_path: Path) -> None:
    source = tmp_path / "bad.py"
    source.write_text(
        "Static(name)\n"
        "Content.from_markup(name)\n"
        "self.notify(name)\n"
        "line.show(f'{name}')\n"
        "self.tooltip = name\n"
        "pane.border_title = name\n"
    )
    assert len(breaches(source, root=tmp_path)) == 6


def breaches(path: Path, *, root: Path = ROOT) -> list[str]:
    where = path.relative_to(root).as_posix()
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Call):
            name = called(node)
            line = f"{where}:{node.lineno} {name}"
            if name in SINKS:
                found.append(f"{line}: use a widget of tui.widgets, which takes Content")
            if name in CONTENT_MAKERS and where != "text.py":
                found.append(f"{line}: Content is made by tui.text alone")
            if name == "notify" and where != "text.py":
                found.append(f"{line}: use tui.text.tell")
            if name in CONTENT_TAKERS and any(map(makes_a_string, node.args[:1])):
                found.append(f"{line}: wrap the string in safe()")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [
                f"{where}:{node.lineno} {target.attr}: Textual reads it as markup"
                for target in targets
                if isinstance(target, ast.Attribute) and target.attr in TEXT_ATTRIBUTES
                if isinstance(target.value, ast.Name) and target.value.id == "self"
                if target.attr != "title"
            ]
            found += [
                f"{where}:{node.lineno} {target.attr}: make the title with safe() or joined()"
                for target in targets
                if isinstance(target, ast.Attribute) and target.attr in TITLES
                if not (isinstance(node.value, ast.Call) and called(node.value) in TITLE_MAKERS)
            ]
    return found


# How full, in text.


@pytest.mark.parametrize(
    ("used", "maximum", "expected"),
    [
        (0, 50, "░░░░░░░░ 0/50 0%"),
        (812, 1000, "██████░░ 812/1,000 81% !"),
        (790, 1000, "██████░░ 790/1,000 79%"),
        (999, 1000, "███████░ 999/1,000 99% !"),
        (5, 5, "████████ 5/5 100% full"),
        (7, 5, "████████ 7/5 140% over"),
        (0, 0, "████████ 0/0 100% full"),
        (3118, None, "········ 3,118, unlimited"),
    ],
)
def test_the_bar_says_it_in_text_too(used: int, maximum: int | None, expected: str) -> None:
    assert quota_bar(used, maximum).plain == expected


# Texts that wrap and scroll.


def plain(paragraph: Paragraph, width: int) -> list[str]:
    return [line.plain for line in wrapped(paragraph, width)]


def test_further_lines_are_indented_like_the_first() -> None:
    assert plain(Paragraph(safe("one two three"), "  • "), 11) == ["  • one two", "    three"]


def test_a_paragraph_without_text_is_a_line() -> None:
    assert plain(Paragraph(safe("")), 20) == [""]


def test_wide_letters_count_as_two() -> None:
    assert plain(Paragraph(safe("山田山田")), 4) == ["山田", "山田"]
