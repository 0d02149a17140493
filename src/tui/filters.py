"""The filter of a list that is read as a whole: words that a row's text contains, in any order."""

from collections.abc import Iterable, Iterator, Sequence

from resumes.text import folded


def parse_filter(text: str) -> list[str]:
    """Return the words of a filter, folded, each once."""
    return list(dict.fromkeys(folded(text).split()))


def has_words(text: str, words: Iterable[str]) -> bool:
    """Return whether the text contains all these words, which are folded, also inside of others."""
    text = folded(text)
    return all(word in text for word in words)


def find_words(text: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where the text has these words, as indexes of its characters."""
    if not words:
        return
    chars = [folded(char) for char in text]
    plain, at = "".join(chars), [number for number, char in enumerate(chars) for _ in char]
    for word in words:
        start = plain.find(word)
        while start >= 0:
            yield at[start], at[start + len(word) - 1] + 1
            start = plain.find(word, start + len(word))
