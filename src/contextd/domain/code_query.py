"""What a person or an agent means by a few words about code."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from contextd.domain.words import index_words, query_words, split_words

QueryKind = Literal["identifier", "words", "question"]
"""A name that stands in the code, words about it, or a question. They are ranked by different weights."""

_PHRASE: Final = re.compile(r'"([^"]+)"')
_TOKEN: Final = re.compile(r"[^\W\d]\w*(?:(?:\.|::|->|#|/)[^\W\d]\w*)*")
_SEPARATOR: Final = re.compile(r"\.|::|->|#|/")
_KEYWORDS: Final = frozenset(
    "func function def fn class struct interface type const var let enum trait impl package method".split()
)
_QUESTION: Final = re.compile(
    r"\W*(?:what|where|how|why|which|when|who|is|are|does|do|did|can|could|should|will|would|if)\b.*\s"
    r"|.*\s.*\?\s*$",
    re.IGNORECASE | re.DOTALL,
)
"""Of one word alone nobody can tell: `is` may be a function."""
_MOST_NAMES: Final = 8
_MOST_NAMED_WORDS: Final = 3
"""In a query this short every word may be a name."""


@dataclass(frozen=True, slots=True)
class CodeQuery:
    text: str
    kind: QueryKind
    words: tuple[str, ...]
    """For the keyword index, any of which a chunk may have."""
    whole: str
    """An identifier of several words as one: who asks for it means it, and not its parts."""
    required: tuple[str, ...]
    """Words of the phrases, all of which it must have."""
    phrases: tuple[str, ...]
    """Between quotes: found letter by letter, but for case."""
    names: tuple[str, ...]
    """What may be the name of a symbol, without what qualifies it."""
    qualifiers: tuple[str, ...]


def read_query(text: str) -> CodeQuery:
    phrases = tuple(part.strip() for part in _PHRASE.findall(text) if part.strip())
    tokens = [token for token in _TOKEN.findall(text) if token.lower() not in _KEYWORDS]
    named = [token for token in tokens if len(tokens) <= _MOST_NAMED_WORDS or _looks_written(token)]
    parts = [_SEPARATOR.split(token) for token in named[:_MOST_NAMES]]
    written = len(tokens) == 1 and (_looks_written(tokens[0]) or _is_bare(text))
    asked: QueryKind = "question" if _QUESTION.match(text) else "words"
    kind: QueryKind = "identifier" if written else asked
    return CodeQuery(
        text=text,
        kind=kind,
        words=tuple(query_words(text)),
        whole="".join(split_words(tokens[0])) if kind == "identifier" else "",
        required=tuple(dict.fromkeys(index_words(" ".join(phrases)).split())),
        phrases=tuple(phrase.lower() for phrase in phrases),
        names=tuple(dict.fromkeys(names[-1] for names in parts)),
        qualifiers=tuple(dict.fromkeys(name for names in parts for name in names[:-1])),
    )


def _looks_written(token: str) -> bool:
    """As code is, and prose is not: `parseFile`, `parse_file`, `v2`, `http.Client`."""
    return len(split_words(token)) > 1 or any(mark in token for mark in "._:#") or token.isupper()


def _is_bare(text: str) -> bool:
    """One word and nothing else."""
    return re.fullmatch(r"\s*\w+(?:\(\))?\s*", text) is not None
