"""The cache of pages."""

from tui.widgets.pages import PAGES_KEPT, Missing, Pages


def rows(first: int, count: int) -> list[str]:
    return [f"{number:06}" for number in range(first, first + count)]


def read_pages(count: int, *, size: int = 10, is_complete: bool = True) -> Pages[str]:
    pages: Pages[str] = Pages(str)
    for page in range(count):
        found = rows(page * size, size)
        is_last = is_complete and page == count - 1
        pages.fill(page, found, None if is_last else found[-1])
    return pages


def test_at_first_the_first_page_is_wanted() -> None:
    pages: Pages[str] = Pages(str)

    assert pages.wanted(0, 20, ahead=40) == 0
    assert pages.cursor(0) == ""
    assert pages.count == 0


def test_the_next_page_is_wanted_ahead_of_the_reader() -> None:
    pages = read_pages(3, is_complete=False)

    assert pages.wanted(0, 5, ahead=10) is None
    assert pages.wanted(15, 20, ahead=10) == 3
    assert pages.cursor(3) == "000029"


def test_nothing_is_wanted_of_a_list_that_is_complete() -> None:
    pages = read_pages(2)

    assert pages.wanted(0, 19, ahead=100) is None
    assert pages.is_complete


def test_an_empty_list_is_complete() -> None:
    pages: Pages[str] = Pages(str)
    pages.fill(0, [], None)

    assert (pages.count, pages.is_complete) == (0, True)


def test_rows_read_long_ago_are_forgotten_and_read_again() -> None:
    pages = read_pages(PAGES_KEPT + 5)

    assert pages.peek(0) is Missing.UNREAD
    assert pages.wanted(0, 5, ahead=10) == 0
    pages.fill(0, rows(0, 10), "000009")
    assert pages.peek(0) == "000000"
    assert pages.peek(10 * (PAGES_KEPT + 5) - 1) != Missing.UNREAD


def test_a_page_read_again_keeps_its_place_when_rows_are_gone() -> None:
    pages = read_pages(3)

    pages.fill(1, [*rows(12, 8), *rows(20, 2)], "000021")

    assert pages.count == 30
    assert pages.peek(10) == "000012"
    assert pages.peek(18) is Missing.GONE
    assert pages.peek(20) == "000020"


def test_after_forgetting_new_rows_at_the_end_are_wanted_too() -> None:
    pages = read_pages(2)

    pages.forget_rows()

    assert pages.wanted(0, 5, ahead=0) == 0
    pages.fill(0, rows(0, 10), "000009")
    pages.fill(1, rows(10, 10), "000019")
    assert pages.wanted(10, 19, ahead=5) == 2
    assert pages.cursor(2) == "000019"
    pages.fill(2, rows(20, 3), None)
    assert (pages.count, pages.is_complete) == (23, True)


def test_forgetting_twice_asks_once() -> None:
    pages = read_pages(2)

    pages.forget_rows()
    pages.forget_rows()
    pages.fill(2, [], None)

    assert (pages.count, pages.is_complete) == (20, True)
