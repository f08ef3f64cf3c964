"""Does a value look like a real secret, or like a stand-in, a reference, a name, a path?"""

import base64
import binascii
import math
import re
from collections import Counter
from itertools import pairwise
from typing import Final

_STAND_IN: Final = re.compile(
    r"""(?ix)
    x{5,} | \*{3,} | \.{3,} | 0{8,} | \#{4,}
    | 1234567890 | 0123456789 | abcdefghij
    | example | placeholder | redacted | change[-_]?me | replace[-_]?(?:me|this|with)
    | dummy | fake | insert[-_] | your[-_] | [-_]here\b | todo
    """
)
_WORD: Final = (
    "passwd|password|passphrase|pass|pwd|pw|secret|token|key|value|string|null|none|undefined|default|username"
    "|user|name|root|admin|guest|postgres|mysql|mongo|my|redis|rabbitmq|testing|tester|test|foo|bar|baz|letmein"
    "|qwerty"
)
_WEAK_STAND_IN: Final = re.compile(
    rf"""(?ix)
    \A(?:{_WORD})[-_]?\d{{0,4}}[!:]?\Z | \A(?:(?:{_WORD})[-_.]?)++\Z | \A[-_.!\d]*\Z
    | (?:\A|[\W_])(?:test|sample|mock|stub|invalid|sandbox|foo|bar)(?:[\W_]|\Z)
    """
)
_REFERENCE: Final = re.compile(
    r"""(?ix)
    \A(?: \$(?:[a-z_]\w*\Z) | %[a-z_]\w*%?\Z | @[a-z] | \#(?:\{|[0-9a-f]{3,8}\Z|[a-z]+\Z)
        | <.*>\Z | \{.*\}\Z | \[.*\]\Z
        | !(?:ref|vault|secret|sub|getatt) | [\w.]+\(.*\)\Z
        | (?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]*)*\Z | [a-z]:\\
        | env[.:(\[] | vault: | arn: | ref\+ | sha\d+[:-] | md5[:-]
        | (?:os|process|system|self|this|cls|args|opts|options|config|cfg|conf|settings|secrets|var
            |local|data|module|params|request|req|ctx|context|user|app|event|state|props)\. )
    | :// | \$\{ | \{\{ | \$\( | %\( | %s | \s
    """
)
_DOTTED_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+\Z")
_TITLE_WORD: Final = re.compile(r"[A-Z][a-z]{2,}")
_HEX_NUMBER: Final = re.compile(r"-?0[xX][0-9a-fA-F]{1,16}\Z")
_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_JWT: Final = re.compile(r"ey[A-Za-z0-9_-]{8,}\.ey[A-Za-z0-9_-]{8,}\.")
_SEGMENTS: Final = re.compile(r"[-_./:@+,]+")
_WORDY: Final = re.compile(r"(?:[A-Za-z]?[a-z]*|[A-Z]+)\d{0,4}\Z|\d+\Z")


def is_anything(match: str, secret: str) -> bool:
    """The judge of rules whose pattern alone is proof."""
    return True


def is_not_a_placeholder(match: str, secret: str) -> bool:
    """The judge of rules with a telling prefix: everything but documentation's stand-ins."""
    return not _STAND_IN.search(secret)


def is_a_credential(match: str, secret: str) -> bool:
    """The judge where the place already says "credential", as in an Authorization header."""
    if _STAND_IN.search(secret) or _REFERENCE.search(secret):
        return False
    return _has_digit(secret) or (len(secret) >= 20 and _changes_case(secret))


def is_a_password_in_its_place(match: str, secret: str) -> bool:
    """The judge where the place says "password", as in a URL: any word may be one."""
    if (
        secret.startswith(("$", "{", "%s", "%(", "<", ":"))
        or re.fullmatch(r"%\w+%", secret)
        or "{" in secret
    ):
        return False
    return not _STAND_IN.search(secret) and not _WEAK_STAND_IN.match(secret)


def is_a_netrc_password(match: str, secret: str) -> bool:
    """After a machine any word is one; a comment may speak of a login and a password, too."""
    if match.lstrip().startswith(("machine", "default")):
        return is_a_password_in_its_place(match, secret)
    return looks_like_a_password(secret.strip("\"'`,;:.()"))


def is_basic_credentials(match: str, secret: str) -> bool:
    """RFC 7617: base64 of `user:password`. A header says enough by itself."""
    pair = _decoded(secret)
    clean = pair.isprintable() and "\ufffd" not in pair
    return ":" in pair and (clean or match.startswith(("A", "a")))


def is_an_encoded_jwt(match: str, secret: str) -> bool:
    return _JWT.match(_decoded(secret)) is not None


def is_random(match: str, secret: str) -> bool:
    """The judge where a place may hold a secret or something else."""
    return looks_random(secret)


def looks_like_a_password(value: str) -> bool:
    """For names that mean a password: anything but a word, a stand-in or a reference."""
    if not 6 <= len(value) <= 4_096 or _is_stand_in(value) or _is_number(value):
        return False
    letters = any(char.isalpha() for char in value)
    symbols = any(not char.isalnum() and char not in "-_./:," for char in value)
    return len(set(value)) >= 5 and letters and (_has_digit(value) or symbols)


def looks_random(value: str) -> bool:
    """For names that may hold a secret or something else: no words, no versions, no dates."""
    if not 8 <= len(value) <= 16_384 or len(set(value)) < 6:
        return False
    if value.isdigit() and len(value) >= 16:
        return not _STAND_IN.search(value)
    if _is_stand_in(value):
        return False
    if _UUID.match(value):
        return True
    if _is_number(value) or all(_WORDY.match(part) for part in _SEGMENTS.split(value)):
        return len(value) >= 16 and value.isalpha() and _changes_case(value)
    plain = [char for char in value if char not in "-_./:@+,="]
    restless = _changes(plain) >= 0.25 * (len(plain) - 1)
    return restless or (len(plain) >= 24 and _has_digit(value) and entropy(value) >= 3.8)


def is_unmistakable(value: str) -> bool:
    """For values that are looked for without their name: nothing that could stand in a text by chance."""
    if looks_random(value):
        return True
    wordy = all(_WORDY.match(part) for part in _SEGMENTS.split(value))
    return not wordy and looks_like_a_password(value)


def entropy(value: str) -> float:
    """Shannon's, in bits a character."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())


def _is_stand_in(value: str) -> bool:
    return bool(
        _STAND_IN.search(value)
        or _WEAK_STAND_IN.search(value)
        or _REFERENCE.search(value)
        or (_DOTTED_NAME.match(value) and (not _changes_case(value) or _ends_in_a_type(value)))
    )


def _ends_in_a_type(name: str) -> bool:
    """As `x509.ExtKeyUsageClientAuth` does: words with capitals, which random letters seldom are."""
    last = re.split(r"\W", name)[-1]
    return sum(map(len, _TITLE_WORD.findall(last))) >= 0.4 * len(last)


def _decoded(code: str) -> str:
    """What base64 stands for; nothing if it is none."""
    try:
        return base64.b64decode(code + "=" * (-len(code) % 4), validate=True).decode("utf-8", "replace")
    except binascii.Error:
        return ""


def _is_number(value: str) -> bool:
    if _HEX_NUMBER.match(value):
        return True
    return not any(char.isalpha() for char in value) and not set(value) - set("0123456789+-_.,:/%eE ")


def _has_digit(value: str) -> bool:
    return any(char.isdigit() for char in value)


def _changes_case(value: str) -> bool:
    return _changes(list(value)) >= 0.25 * (len(value) - 1)


def _changes(chars: list[str]) -> int:
    """How often the kind of character changes. A capital before small letters begins a word: no change."""
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" if c.isalpha() else "s" for c in chars]
    return sum(one != two and (one, two) != ("u", "l") for one, two in pairwise(kinds))
