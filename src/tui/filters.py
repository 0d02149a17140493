"""Filter a list that is read all at once: a row must contain all words of the filter."""

from collections.abc import Iterable, Iterator, Sequence

from resumes.text import folded


def parse_filter(text: str) -> list[str]:
    """Return the distinct words of a filter, folded."""
    return list(dict.fromkeys(folded(text).split()))


def has_words(text: str, words: Iterable[str]) -> bool:
    """Return whether the text contains all these folded words, even as parts of longer words."""
    text = folded(text)
    return all(word in text for word in words)


def find_words(text: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each occurrence of these folded words in the text."""
    if not words:
        return
    chars = [folded(char) for char in text]
    plain, at = "".join(chars), [number for number, char in enumerate(chars) for _ in char]
    for word in words:
        start = plain.find(word)
        while start >= 0:
            yield at[start], at[start + len(word) - 1] + 1
            start = plain.find(word, start + len(word))
