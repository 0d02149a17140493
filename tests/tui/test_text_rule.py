"""The rule behind `tui.text`, held in the source: no string reaches a widget by another way."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tui

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
CONTENT_TAKERS = frozenset(
    {"TitleLine", "Note", "TextButton", "Paragraph", "show", "update", "say_when_empty"}
)
TEXT_ATTRIBUTES = frozenset(
    {"border_title", "border_subtitle", "tooltip", "title", "sub_title", "renderable"}
)


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


def breaches(path: Path) -> list[str]:
    where = path.relative_to(ROOT).as_posix()
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Call):
            name = called(node)
            line = f"{where}:{node.lineno} {name}"
            if name in SINKS:
                found.append(f"{line}: use a widget of tui.widgets, which takes Content")
            if name in CONTENT_MAKERS and where != "text.py":
                found.append(f"{line}: Content is made by tui.text alone")
            if name == "notify" and where != "toasts.py":
                found.append(f"{line}: use tui.toasts.tell")
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
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_string_reaches_a_widget_but_as_content(path: Path) -> None:
    assert breaches(path) == []


def test_toasts_take_no_markup() -> None:
    calls = [
        node
        for node in nodes(ROOT / "toasts.py")
        if isinstance(node, ast.Call) and called(node) == "notify"
    ]

    assert calls
    for call in calls:
        markup = {word.arg: word.value for word in call.keywords}["markup"]
        assert isinstance(markup, ast.Constant)
        assert markup.value is False


def test_the_rule_sees_a_breach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "bad.py"
    source.write_text(
        "Static(name)\n"
        "Content.from_markup(name)\n"
        "self.notify(name)\n"
        "line.show(f'{name}')\n"
        "self.tooltip = name\n"
    )
    monkeypatch.setattr("tests.tui.test_text_rule.ROOT", tmp_path)

    assert len(breaches(source)) == 5
