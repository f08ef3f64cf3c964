"""An answer as it leaves: one text, weighed in tokens as a context window would."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

Count = Callable[[str], int]

_A_TOKEN: Final = 4
"""Characters, roughly: for a first guess."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool's answer, scrubbed, bounded and weighed. `text` is the data with the envelope beside it."""

    data: dict[str, Any]
    text: str
    tokens_used: int
    """Of `text`, exactly."""
    truncated: bool = False
    refs: tuple[str, ...] = ()
    warning: str = ""
    tokens_beside: int = 0
    """Of `tokens_used`, what is not the tool's own: the envelope, and the marks where something was cut."""
    tokens_cut: int = 0
    """What the same answer would have held besides without a budget."""

    @property
    def has_more(self) -> bool:
        return self.truncated

    def envelope(self) -> dict[str, Any]:
        """What stands beside the data; only `tokens_used` when there is nothing else to say."""
        return _envelope(self.tokens_used, self.refs, self.warning, truncated=self.truncated)


def weighed(
    data: dict[str, Any],
    count: Count,
    refs: tuple[str, ...] = (),
    warning: str = "",
    *,
    truncated: bool = False,
) -> Answer:
    """The answer with its weight written into it, which is a part of what is weighed."""
    body = as_json(data)
    guess = len(body) // _A_TOKEN
    while True:
        beside = _envelope(guess, refs, warning, truncated=truncated)
        tokens = count(_joined(body, beside))
        if _figures(tokens) == _figures(guess):
            break
        guess = tokens
    beside["tokens_used"] = tokens
    text = _joined(body, beside)
    return Answer(data, text, tokens, truncated, refs, warning, tokens_beside=count(as_json(beside)))


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def as_json(value: object) -> str:
    """The one way that answers are written: keys in their order, nothing between."""
    return _ENCODER.encode(value)


def _envelope(tokens: int, refs: tuple[str, ...], warning: str, *, truncated: bool) -> dict[str, Any]:
    beside: dict[str, Any] = {"tokens_used": tokens}
    if truncated or refs:
        beside |= {"truncated": truncated, "has_more": truncated, "refs": list(refs)}
    if warning:
        beside["warning"] = warning
    return beside


def _joined(data: str, beside: dict[str, Any]) -> str:
    """The envelope's fields put into the data's JSON, which is made once."""
    more = as_json(beside)[1:]
    return f"{data[:-1]},{more}" if len(data) > len("{}") else f"{{{more}"


def _figures(number: int) -> int:
    """How many tokens a number costs: three digits each."""
    return -(-len(str(number)) // 3)
