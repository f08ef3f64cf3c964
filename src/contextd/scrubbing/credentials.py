"""Files of credentials, be they `.env`, INI, netrc, JSON or YAML: values whose names promise a secret."""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from contextd.scrubbing.names import fits, secret_family

MOST_CHARACTERS: Final = 1 << 20
"""Longer files are no files of credentials; the rest of one is not read."""

_ASSIGNMENT: Final = re.compile(
    r"""(?mx)
    ^[ \t]*(?:-[ \t]+)?(?:export[ \t]+|set[ \t]+)?["']?([\w./:@-]{1,256}?)["']?[ \t]*[=:][ \t]*
    (?:"([^"\n]*)"|'([^'\n]*)'|([^\s\#][^\n]*?))[ \t]*(?:[ \t]\#[^\n]*)?\r?$
    """
)
_NETRC: Final = re.compile(r"(?:^|\s)password\s+(\S+)")
_PAIR: Final = re.compile(r"[^:\s]+:(\S+)\Z")


def secrets_in(text: str) -> Iterator[str]:
    """Values whose name promises a secret and that look like one."""
    text = text[:MOST_CHARACTERS]
    for name, value in _entries(text):
        family = secret_family(name)
        if family and fits(family, value):
            yield value
        if family and (password := _of_a_pair(value)):
            yield password
    if "machine" in text:
        yield from (match[1] for match in _NETRC.finditer(text) if fits("password", match[1]))


def secrets_of(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names and values of an environment's secrets."""
    for name, value in environment.items():
        family = secret_family(name)
        if family and fits(family, value):
            yield name, value


def _entries(text: str) -> Iterator[tuple[str, str]]:
    try:
        yield from _leaves("", json.loads(text))
    except (ValueError, RecursionError):
        for match in _ASSIGNMENT.finditer(text):
            yield match[1], next(value for value in match.groups()[1:] if value is not None)


def _leaves(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(key, item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(name, item)


def _of_a_pair(value: str) -> str | None:
    """The password in the base64 of `user:password`, as Docker and npm keep it."""
    try:
        pair = base64.b64decode(value, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return None
    match = _PAIR.match(pair)
    return match[1] if match and fits("password", match[1]) else None
