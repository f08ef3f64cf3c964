"""Names as people remember them: nearly right."""

import random
from collections.abc import Callable, Sequence
from typing import Final

from contextd.domain.words import split_words

_SHORT: Final = {
    "context": "ctx",
    "message": "msg",
    "config": "cfg",
    "error": "err",
    "request": "req",
    "response": "resp",
    "parameter": "param",
    "function": "func",
    "argument": "arg",
    "connection": "conn",
    "directory": "dir",
    "temporary": "tmp",
    "value": "val",
    "index": "idx",
    "length": "len",
    "command": "cmd",
    "option": "opt",
    "statement": "stmt",
}
_LONG: Final = {short: long for long, short in _SHORT.items()}
_LEAST: Final = 5
"""Letters of a word that is misspelt."""

Way = Callable[[list[str], random.Random], list[str]]


def misremembered(name: str, chance: random.Random) -> str | None:
    """Another name that means this one; None when it is too short for that."""
    words = split_words(name)
    ways = list(_WAYS)
    chance.shuffle(ways)
    for way in ways:
        changed = way(list(words), chance)
        if changed and changed != words:
            return _written_like(name, changed)
    return None


def _without_one(words: list[str], chance: random.Random) -> list[str]:
    if len(words) > 2:
        del words[chance.randrange(1, len(words))]
    return words


def _in_another_order(words: list[str], chance: random.Random) -> list[str]:
    if len(words) > 2:
        at = chance.randrange(1, len(words) - 1)
        words[at], words[at + 1] = words[at + 1], words[at]
    return words


def _in_another_number(words: list[str], chance: random.Random) -> list[str]:
    last = words[-1] if words else ""
    if last.isalpha() and len(last) > 2:
        words[-1] = last.removesuffix("s") if last.endswith("s") else f"{last}s"
    return words


def _abbreviated(words: list[str], chance: random.Random) -> list[str]:
    return [_SHORT.get(word) or _LONG.get(word) or word for word in words]


def _misspelt(words: list[str], chance: random.Random) -> list[str]:
    long = [at for at, word in enumerate(words) if len(word) >= _LEAST]
    if long and len(words) > 1:
        word = words[at := chance.choice(long)]
        letter = chance.randrange(1, len(word))
        again = word[letter] if chance.random() < 0.5 else ""
        words[at] = word[:letter] + again * 2 + word[letter + 1 :]
    return words


def _with_one_more(words: list[str], chance: random.Random) -> list[str]:
    if len(words) > 1:
        words.insert(chance.choice((0, len(words))), chance.choice(("get", "new", "func", "value", "name")))
    return words


_WAYS: Final[Sequence[Way]] = (
    _without_one,
    _in_another_order,
    _in_another_number,
    _abbreviated,
    _misspelt,
    _with_one_more,
)


def _written_like(name: str, words: Sequence[str]) -> str:
    if "_" in name.strip("_"):
        return "_".join(words)
    first, *others = words
    return (first.capitalize() if name[:1].isupper() else first) + "".join(map(str.capitalize, others))
