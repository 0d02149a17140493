import threading

from importer.changes import Changes

LIMIT_S = 60.0


def test_what_is_marked_is_taken_once() -> None:
    changes = Changes()
    changes.mark("ana")
    changes.mark("ana")
    changes.mark("")
    marked = changes.take()
    assert marked.names == {"ana", ""}
    assert not marked.is_all
    assert "ana" in marked
    assert "bob" not in marked
    assert not changes.take()


def test_everything_marked_is_every_name() -> None:
    changes = Changes()
    changes.mark_all()
    marked = changes.take()
    assert marked
    assert "whoever" in marked
    assert marked.names == frozenset()
    assert "whoever" not in changes.take()


def test_a_wait_ends_at_once_while_something_is_marked() -> None:
    changes = Changes()
    changes.mark("ana")
    assert changes.wait(LIMIT_S)
    assert changes.wait(LIMIT_S)
    changes.take()
    assert not changes.wait(0)


def test_a_mark_ends_a_wait() -> None:
    changes = Changes()
    marker = threading.Timer(0.01, changes.mark_all)
    marker.start()
    assert changes.wait(LIMIT_S)
    marker.join()


def test_waking_ends_a_wait_with_nothing_marked() -> None:
    changes = Changes()
    waker = threading.Timer(0.01, changes.wake)
    waker.start()
    assert not changes.wait(LIMIT_S)
    waker.join()
    assert not changes.take()


def test_waking_ends_the_next_wait_and_no_more() -> None:
    changes = Changes()
    changes.wake()
    ended = threading.Event()

    def wait_twice() -> None:
        changes.wait(LIMIT_S)
        ended.set()
        changes.wait(LIMIT_S)

    thread = threading.Thread(target=wait_twice)
    thread.start()
    assert ended.wait(LIMIT_S / 2)
    thread.join(0.05)
    assert thread.is_alive()
    changes.mark("ana")
    thread.join(LIMIT_S / 2)
    assert not thread.is_alive()
