"""The ways of looking at one resume."""

import pytest

from resumes.errors import NotFound
from resumes.store.engine import Store
from tests.tui.builders import a_document, stored
from tui.screens.resumes.views import View, show


@pytest.mark.parametrize("view", View)
def test_each_view_has_something_to_show(store: Store, view: View) -> None:
    (resume_id,) = stored(store, a_document(title="Mine"))

    shown = show(store, account="ana", resume_id=resume_id, view=view)

    assert (shown.entry.id, shown.view, shown.account) == (resume_id, view, "ana")
    assert shown.paragraphs


def test_a_resume_that_is_gone_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        show(store, account="ana", resume_id="0" * 24, view=View.TEXT)
