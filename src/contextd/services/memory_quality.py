"""What is worth keeping, what says the same, and what says the opposite. Judged by words alone."""

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Final

from contextd.domain.errors import NotWorthKeeping
from contextd.domain.words import split_words
from contextd.services.memory_records import Memory

_LEAST_CONTENT: Final = 2
_LEAST_TOGETHER: Final = 4
"""Telling words that the content needs, and that title and content need together."""

_SAME_COSINE: Final = 0.9
_SAME_WORDS: Final = 0.7
_CONTAINED: Final = 0.9
"""Of the shorter text's words, so many in the longer one make the longer a fuller telling of the same."""

_NEAR_SUBJECT: Final = 0.4
_SAME_SUBJECT: Final = 0.6
"""Shares of the titles' words; below the first, texts are not even compared."""
_RELATED: Final = 0.25

_PLACEHOLDER: Final = re.compile(r"\[REDACTED:[^\]\s]*\]")
_DENIAL: Final = re.compile(r"\b(?:not|never|no longer|cannot|avoid|\w+n['\u2019]t)\b", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s)|\n")
_TOKEN: Final = re.compile(r"[^\s,;()\[\]{}<>\"'`]+")
_PARTICULAR: Final = re.compile(r"\d|_|/|::|\w\.\w|^--?\w|[a-z][A-Z]")
_SUFFIXES: Final = (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))

_EMPTY: Final = frozenset(
    """
    a about all an and any are as at be been being but by can cannot could did do does don for from had
    has have he her here his how i if in into is it its ll me my never no nor not of on or our re s she
    should so t than that the their them then there these they this those to too up ve very was we were
    what when where which who why will with would you your
    """.split()
)
"""Words that every text has, and denials: those are judged apart."""

_BOILERPLATE: Final = frozenset(
    """
    alright already also available change changed changes check checked code commit committed complete
    completed correct correctly done error errors everything file files fine finish finished fix fixed fixes
    good great implemented issue issues just lgtm memory n na nice nil none note nothing now null ok okay
    perfect please problem problems push pushed resolved save saved something stuff success successful
    successfully sure task tasks tbd test tests thank thanks thing things todo update updated work worked
    working works x yes
    """.split()
)
"""Words of a message that says that something went well and not what."""


# --- worth keeping --------------------------------------------------------------------


def refuse_junk(title: str, content: str) -> None:
    """Of texts that were scrubbed already. Raises NotWorthKeeping, which names the field."""
    bare = _PLACEHOLDER.sub(" ", content)
    in_content = _weight(_distinct(bare))
    if in_content < _LEAST_CONTENT and bare != content:
        raise NotWorthKeeping("content", "content holds nothing but secrets, which are not kept")
    if not split_words(bare):
        raise NotWorthKeeping("content", "content has no words")
    if in_content < _LEAST_CONTENT:
        raise NotWorthKeeping("content", "content says nothing that another session could use")
    if _weight(_distinct(f"{_PLACEHOLDER.sub(' ', title)} {bare}")) < _LEAST_TOGETHER:
        raise NotWorthKeeping("content", "content is too short to be of use")


def _distinct(text: str) -> set[str]:
    words = {word for word in split_words(text) if not word.isdigit()}
    return words - _EMPTY - _BOILERPLATE


def _weight(words: Iterable[str]) -> int:
    """How many words these are. Scripts without spaces make one long word of a sentence."""
    return sum(1 if word.isascii() else max(1, len(word) // 3) for word in words)


# --- the same, and the opposite -------------------------------------------------------


class Gist:
    """What a memory says, as sets that compare quickly; each is made when it is first asked for."""

    def __init__(self, memory: Memory) -> None:
        self.outcome = memory.outcome
        self._memory = memory

    @cached_property
    def subject(self) -> frozenset[str]:
        return telling_words(self._memory.title)

    @cached_property
    def _text(self) -> str:
        return f"{self._memory.title}\n{self._memory.description}\n{self._memory.content}"

    @cached_property
    def _lead(self) -> str:
        first_sentence = _SENTENCE_END.split(self._memory.content.strip(), maxsplit=1)[0]
        return f"{self._memory.title}\n{first_sentence}"

    @cached_property
    def lead(self) -> frozenset[str]:
        return telling_words(self._lead)

    @cached_property
    def words(self) -> frozenset[str]:
        return telling_words(self._text)

    @cached_property
    def particulars(self) -> frozenset[str]:
        """Numbers, names of code, paths, flags: to change one is to say something else."""
        return particulars(self._text)

    @cached_property
    def denies(self) -> bool:
        """Whether title and first sentence say that something is not so."""
        return len(_DENIAL.findall(self._lead)) % 2 == 1


def says_the_same(one: Gist, other: Gist, cosine: float | None) -> bool:
    """Near-duplicates: close in meaning and in words, and nothing that one says against the other."""
    if cosine is None:
        alike = overlap(one.words, other.words) >= _CONTAINED
    else:
        alike = cosine >= _SAME_COSINE and (
            overlap(one.words, other.words) >= _SAME_WORDS
            or _contained(one.words, other.words) >= _CONTAINED
        )
    against = opposite(one, other) or _disagree(one, other) or contradicts(one, other)
    return alike and not against


def contradicts(one: Gist, other: Gist) -> bool:
    """The same subject, and opposite outcomes, a claim and its denial, or another value."""
    subject = overlap(one.subject, other.subject)
    if subject < _NEAR_SUBJECT:
        return False
    words = overlap(one.words, other.words)
    if opposite(one, other):
        return words >= _SAME_SUBJECT or (subject >= _SAME_SUBJECT and words >= _RELATED)
    if one.denies != other.denies:
        return overlap(one.lead, other.lead) >= _SAME_SUBJECT
    return words >= _SAME_WORDS and _disagree(one, other)


def opposite(one: Gist, other: Gist) -> bool:
    """One tells a success, the other a failure: whatever their words, to join them is to lose one."""
    return None not in (one.outcome, other.outcome) and one.outcome != other.outcome


def loses(old: Memory, new: Memory) -> bool:
    """Whether the old one said something that the new one does not."""
    before, after = Gist(old), Gist(new)
    if before.outcome not in (None, after.outcome):
        return True
    return bool(before.words - after.words or before.particulars - after.particulars)


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Shared words over all words."""
    return len(one & other) / len(one | other) if one and other else 0.0


def _contained(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


def _disagree(one: Gist, other: Gist) -> bool:
    """Each names something particular that the other does not."""
    return bool(one.particulars - other.particulars) and bool(other.particulars - one.particulars)


def particulars(text: str) -> frozenset[str]:
    tokens = (token.rstrip(".:!?") for token in _TOKEN.findall(text))
    return frozenset(token.lower() for token in tokens if _PARTICULAR.search(token))


# --- words ----------------------------------------------------------------------------


def telling_words(text: str) -> frozenset[str]:
    """The stems of the words that say something; no numbers."""
    return frozenset(stem(word) for word in split_words(text) if word not in _EMPTY and not word.isdigit())


def wanted_words(query: str) -> frozenset[str]:
    """The stems of what is asked for; if a query has none but empty words, of those."""
    words = split_words(query)
    return frozenset(stem(word) for word in words if word not in _EMPTY) or frozenset(map(stem, words))


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """`caches`, `cached` and `caching` become one. Coarse, and the same for all it is compared with."""
    if len(word) < 4 or not word.isascii() or word.endswith("ss"):
        return word
    for suffix, instead in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word.removesuffix(suffix) + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word
