"""Text into words, the same way for the keyword index and for every model.

Splitting identifiers before indexing and before embedding is worth more than most choices of
a model: `parseHTTPRequest_v2` is found by "http request".
"""

import re
from typing import Final

_PARTS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_A-Za-z]+")
_RUNS: Final = re.compile(r"[^\W_]+(?:_[^\W_]+)+|[^\W_]+")


def split_words(text: str) -> list[str]:
    """Words in order, lower-case: split at camelCase, snake_case and digits; punctuation is gone."""
    return [part.lower() for part in _PARTS.findall(text)]


def stem(word: str) -> str:
    """Roughly, a word without the endings of English: `parses`, `parsed` and `parsing` meet."""
    for ending, least in (("ing", 6), ("ies", 5), ("ed", 5), ("es", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            word = word[: -len(ending)] + ("y" if ending == "ies" else "")
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def index_words(text: str) -> str:
    """What the keyword index holds: each word's parts, and the whole identifier when it has several."""
    words: list[str] = []
    for run in _RUNS.findall(text):
        parts = split_words(run)
        words.extend(parts)
        if len(parts) > 1:
            words.append("".join(parts))
    return " ".join(words)


def query_words(text: str, most: int = 32) -> list[str]:
    """A query's words for the keyword index: no repeats, and no word that every text has.

    If it has no other words, those are kept: a search for "to be" still finds something.
    """
    words = list(dict.fromkeys(index_words(text).split()))
    telling = [word for word in words if word not in EVERYWHERE]
    return (telling or words)[:most]


EVERYWHERE: Final = frozenset(
    """
    a an and are as at be been but by can could did do does for from had has have how i if in into is
    it its me my no not of on or our so that the their them then there these they this to up was we
    were what when where which who why will with would you your
    """.split()
)
