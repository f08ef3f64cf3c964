"""Does a name, be it a variable, a JSON key, a header or a flag, promise a secret?"""

import re
from itertools import pairwise
from typing import Final, Literal

from contextd.domain.words import split_words
from contextd.scrubbing.values import is_a_credential, looks_like_a_password, looks_random

Family = Literal["password", "secret", "header"]
"""How sure the name makes us: a password may be any odd word, a secret has to look random."""

KEY_OWNERS: Final = tuple(
    "access account admin aes api app application auth client consumer deploy encryption hmac jwt master "
    "private root secret security service session shared signing ssh storage subscription webhook".split()
)
"""`<owner> key` is a secret; a cache key, a primary key or a public key is not."""

_PASSWORDS: Final = ("password", "passwd", "passphrase", "passcode", "pwd")
_SECRETS: Final = ("secret", "token", "credential", "apikey", "secretkey", "accesskey", "privatekey")
"""What a word of the name ends in: `dbpassword` and `clientsecret` are one word each."""

_PLURALS: Final = frozenset({word + "s" for word in (*_PASSWORDS, *_SECRETS, "key")})

_HARMLESS: Final = frozenset(
    """
    public publishable page next previous continuation cursor cancel cancellation eos bos pad unk sep mask
    cls stop special anti idempotency starting change lock lifecycle
    """.split()
)
"""Words that make any name of theirs harmless: `next_page_token`, `public_key`, `eos_token`."""

_ABOUT: Final = frozenset(
    """
    age alg algorithm arn at attempt attempts bits body bucket budget bytes cache case changed check
    checker class config cost count counter created date days description digest dir directory duration
    enabled encoding end endpoint error errors exists expiration expired expires expiry field file
    filename fingerprint flow format found generator group hash header hint host id identifier ids in
    index input issuer kind label last len length level lifetime limit limits line list location manager
    max md message method min minutes mode model name names namespace offset out output parser path
    pattern placeholder policy position prefix probability prompt provider rate ratio redacted ref
    reference regex region remaining required reset rotation rule rules scheme scope scopes sec seconds
    server sha signature size source start state status store stream strength suffix time timeout title
    contains endswith startswith
    total tree ttl type types uri url urls usage used user username validator version visible window
    """.split()
)
"""What a name ends in when it talks about a secret and does not hold it: `token_url`, `password_length`."""

_KEYS_OF_DATA: Final = frozenset(
    """
    cache column context dedupe dict entry event file foreign group hash host i index item kms lookup map
    memo message metadata object partition path primary product property pub query react registry row s
    search shard sort state table tag task test translation unique
    """.split()
)
"""Whose key says where something is: `cacheKey`, `s3_key`."""

_DIGEST: Final = re.compile(r"(?i)[0-9a-f]+\Z")
_MAX_NAME_LENGTH: Final = 256
_LEADING_NAME: Final = re.compile(r"[\w.-]+")
_SCHEME: Final = re.compile(r"(?i)\s*(?:bearer|basic|token|apikey|api-key|digest|negotiate)\s+")


def secret_family(name: str) -> Family | None:
    """The family of secrets that this name holds, or None."""
    words = [_singular(word) for word in split_words(name[-_MAX_NAME_LENGTH:]) if not word.isdigit()]
    if not words or words[-1] in _ABOUT or not _HARMLESS.isdisjoint(words):
        return None
    if words[-1] == "authorization":
        return "header"
    if words[-1] in ("pass", "pw") or any(word.endswith(_PASSWORDS) for word in words):
        return "password"
    if words[-1] == "auth" or any(word.endswith(_SECRETS) for word in words) or _owns_a_key(words):
        return "secret"
    return None


def fits(family: Family, value: str) -> bool:
    """Whether a value under a name of this family is a secret indeed."""
    if family == "password":
        return looks_like_a_password(value)
    if family == "secret":
        return looks_random(value)
    scheme = _SCHEME.match(value)
    return is_a_credential(value, value[scheme.end() :].strip()) if scheme else looks_random(value)


def is_an_assigned_secret(match: str, secret: str) -> bool:
    """The judge of `name = value`. The match begins with the name."""
    family = _family_of(match)
    if family is None or match.startswith("://"):
        return False  # in a URL the name is a user's, and its password has a rule of its own
    # `f(password=pass2)` passes a variable on: inside brackets only what looks random is a value.
    inside_brackets = match[-1] in ",)]}"
    return looks_random(secret) if inside_brackets else fits(family, secret)


def is_a_random_key(match: str, secret: str) -> bool:
    """The judge of `<anything>key = "value"`, which is as often a key of data: only what no word, no path
    and no digest could be."""
    name = _LEADING_NAME.search(match)
    words = split_words(name[0]) if name else []
    if words[-1:] != ["key"] or not _HARMLESS.isdisjoint(words) or not _KEYS_OF_DATA.isdisjoint(words):
        return False
    return len(secret) >= 20 and not _DIGEST.match(secret) and secret.isalnum() and looks_random(secret)


def is_a_random_argument(match: str, secret: str) -> bool:
    """The judge of `"name", "value"`, which is as often a list of two names."""
    return _family_of(match) is not None and looks_random(secret)


def _family_of(match: str) -> Family | None:
    name = _LEADING_NAME.search(match)
    return secret_family(name[0]) if name else None


def _owns_a_key(words: list[str]) -> bool:
    return any(two == "key" and one in KEY_OWNERS for one, two in pairwise(words))


def _singular(word: str) -> str:
    return word[:-1] if word in _PLURALS else word
