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
    others = _envelope(0, refs, warning, truncated=truncated)
    del others["tokens_used"]
    rest = f",{as_json(others)[1:]}" if others else "}"
    guess = len(body) // _A_TOKEN
    while True:
        tokens = count(_joined(body, guess, rest))
        if _figures(tokens) == _figures(guess):
            break
        guess = tokens
    beside = count(_joined("{}", tokens, rest))
    text = _joined(body, tokens, rest)
    return Answer(data, text, tokens, truncated, refs, warning, tokens_beside=beside)


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


def _joined(data: str, tokens: int, rest: str) -> str:
    """The envelope put into the data's JSON, which is made once."""
    comma = "," if len(data) > len("{}") else ""
    return f'{data[:-1]}{comma}"tokens_used":{tokens}{rest}'


def _figures(number: int) -> int:
    """How many tokens a number costs: three digits each."""
    return -(-len(str(number)) // 3)
