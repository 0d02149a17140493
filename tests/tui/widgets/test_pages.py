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


def test_a_page_read_again_keeps_every_row_in_its_place() -> None:
    pages = read_pages(3)

    pages.fill(1, [*rows(10, 2), *rows(13, 7), *rows(20, 1)], "000020")

    assert pages.count == 30
    assert [pages.peek(number) for number in (11, 12, 13)] == ["000011", Missing.GONE, "000013"]
    assert pages.peek(20) == "000020"


def test_a_page_forgotten_meanwhile_keeps_its_length() -> None:
    pages = read_pages(PAGES_KEPT + 1)

    pages.fill(0, [*rows(2, 8), *rows(10, 2)], "000011")

    assert pages.peek(0) == "000002"
    assert pages.peek(8) is Missing.GONE


def test_what_may_have_changed_is_shown_until_it_is_read_again() -> None:
    pages = read_pages(2)

    pages.expect_changes()

    assert pages.peek(3) == "000003"
    assert pages.wanted(0, 5, ahead=0) == 0
    pages.fill(0, rows(0, 10), "000009")
    assert pages.wanted(0, 5, ahead=0) == 2
    assert pages.cursor(2) == "000019"
    pages.fill(2, rows(20, 3), None)
    assert (pages.count, pages.is_complete) == (23, True)
    assert pages.wanted(0, 5, ahead=0) is None
    assert pages.wanted(12, 15, ahead=0) == 1


def test_a_list_to_which_nothing_came_stays_as_long_as_it_was() -> None:
    pages = read_pages(2)

    for _ in range(3):
        pages.expect_changes()
        pages.fill(2, [], None)

    assert (pages.count, pages.is_complete, pages.next_page) == (20, True, 2)


def test_rows_come_to_a_list_that_was_empty() -> None:
    pages: Pages[str] = Pages(str)
    pages.fill(0, [], None)

    pages.expect_changes()
    assert pages.wanted(0, 5, ahead=0) == 1
    assert pages.cursor(1) == ""
    pages.fill(1, rows(0, 3), None)

    assert [pages.peek(number) for number in range(3)] == rows(0, 3)


def test_a_row_is_found_by_its_key() -> None:
    pages = read_pages(3)

    assert pages.find("000012") == 12
    assert pages.find("000099") is None
