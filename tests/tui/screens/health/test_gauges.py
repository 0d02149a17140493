"""The figures in as many columns as there is room for."""

from dataclasses import replace

import pytest

from resumes.health.gauges import Gauges
from resumes.store.database import Size
from resumes.store.ledger import FileOutcome
from tui.screens.health.gauges import GAUGE_CELLS, gauge_lines, gauge_texts

GAUGES = Gauges(
    size=Size(3 * 2**30, 5 * 2**20),
    free_bytes=40 * 2**30,
    accounts=12,
    resumes=1_000_000,
    files={
        FileOutcome.DONE: 1_204,
        FileOutcome.FAILED: 3,
        FileOutcome.HELD: 2,
        FileOutcome.DUPLICATE: 9,
    },
    live_importers=1,
    waiting_files=7,
    oldest_request_s=300.0,
)


def test_each_gauge_says_how_it_stands() -> None:
    assert gauge_texts(GAUGES) == [
        ("Store", "3.0 GiB + 5.0 MiB log"),
        ("Resumes", "1,000,000 in 12 accounts"),
        ("Disk", "40 GiB free"),
        ("Importers", "1 live, 7 files waiting"),
        ("Files", "1,204 done, 3 failed, 2 held"),
        ("Requests", "oldest waits for 5 minutes"),
    ]


def test_what_is_not_known_is_a_dash() -> None:
    texts = dict(gauge_texts(replace(GAUGES, free_bytes=None, oldest_request_s=None)))

    assert (texts["Disk"], texts["Requests"]) == ("—", "none waits")


@pytest.mark.parametrize(("width_cells", "lines"), [(20, 6), (78, 3), (118, 2), (198, 2), (240, 1)])
def test_wider_terminals_need_fewer_lines(width_cells: int, lines: int) -> None:
    drawn = gauge_lines(GAUGES, width_cells)

    assert len(drawn) == lines
    assert len({line.cell_length for line in drawn}) == 1
    assert all(line.cell_length <= max(width_cells, GAUGE_CELLS) for line in drawn)
