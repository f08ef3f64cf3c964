"""What changes from run to run, taken out of a text: paths, numbers, ids, times, hosts, names.

Every repetition here is bounded or possessive, and no character is read again from more than a few
places, so the time grows with the length of the text and no faster, whatever the text.
"""

import re
from typing import Final

HOLE: Final = "<*>"

_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}+"
_DAY: Final = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}+"
_CLOCK: Final = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?:[ ]?(?:[AaPp][Mm]|Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?"
_UNITS: Final = (
    r"(?:[nuµm]s|s|secs?|seconds?|milliseconds?|microseconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?"
    r"|[KMGTPkmgt]?i?[Bb]|bytes?|bits?|pages?|%)"
)

_NAMED: Final = (
    r"user|username|host|hostname|node|pod|container|endpoint|namespace|service|project|package|crate"
    r"|gem|topic|queue|bucket|branch|dev"
)
"""Nouns that are often followed by a name without quotes."""

_SCANNER: Final = re.compile(
    rf"""
      (?P<hole> <\*> )
    | (?P<redacted> \[REDACTED:[^\]\s]{{1,80}}+\] )
    | (?P<code>
          (?<![\w-]) (?:TS|CS|ORA-|PLS-|LNK|MSB|NU|NETSDK|BC|FS|CA|AADSTS|SQLSTATE\[|ERR-)
          [A-Z\d]{{2,7}}+ \b
        | (?: (?<=error\[) | (?<=error[ ]) | (?<=code[ ]) | (?<=Error[ ]) ) [A-Z]{{1,8}}+ -? \d{{2,6}}+ \b
        | (?<=ERROR[ ]) \d{{3,5}} (?=[ ]\()
      )
    | (?P<status>
          (?<!\w) (?:exit[ ](?:code|status)|exited[ ]with(?:[ ](?:code|status))?|status[ ]code|HTTP|signal)
          [ :=]{{1,2}}+ \d{{1,3}}+ (?!\w|\.\d)
      )
    | (?P<time>
          (?<![\w.]) \d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}} (?:[T ]{_CLOCK})?
        | (?<!\w) (?:{_DAY},?[ ]{{1,2}})? {_MONTH}\.?[ ]{{1,2}}\d{{1,2}}\b
            (?:,?[ ]\d{{4}}\b)? (?:[ ]{_CLOCK})? (?:[ ][A-Z]{{3,4}}\b)? (?:[ ]\d{{4}}\b)?
        | (?<![\w.]) \d{{1,2}}[ /-]{_MONTH}[ /-]\d{{2,4}} (?:[: ]{_CLOCK})?
        | (?<![\w.:]) {_CLOCK}
      )
    | (?P<url> (?<!\w) [A-Za-z][A-Za-z\d+.-]{{1,20}}+ ://[^\s"'`<>()\[\]{{}}|]*+ )
    | (?P<quoted>
          "(?P<double>(?:[^"\\\n]|\\.){{0,200}})"
        | (?<![\w\\])'(?P<single>(?:[^'\\\n]|\\.|(?<=\w)'(?=\w)){{0,200}}?)'(?!\w)
        | `(?P<tick>[^`'\n]{{0,200}}+)[`'](?!\w)
        | [\u2018\u201c\xab](?P<curly>[^\u2018\u2019\u201c\u201d\xab\xbb\n]{{0,200}}+)[\u2019\u201d\xbb]
      )
    | (?P<path> (?<![\w.<>*]) (?:\.{{1,2}}|~|[A-Za-z]:)? [/\\] [^\s"'`<>()\[\]{{}}|,;]++ )
    | (?P<measure> (?<![\w.]) [-+]?\d[\d.,]{{0,20}}+ [ ]{_UNITS}(?!\w) )
    | (?P<pinned> (?<![\w.-]) [A-Za-z_][\w.\[\]-]{{0,80}}+ (?:==|>=|<=|~=|!=) [\w.*+-]{{1,40}}+ )
    | (?P<pair>
          (?<![\w.-]) (?P<key>[A-Za-z_][\w.-]{{0,60}}+)
          =(?P<value>[^\s=<>"'`,;()\[\]{{}}|]{{1,200}}+)
      )
    | (?P<named>
          (?<![\w.-]) (?P<noun>(?i:{_NAMED})) (?P<gap>[ ]|(?<=host):[ ]|(?<=user):[ ])
          (?P<name>[A-Za-z_][\w@.:/-]{{0,100}}+)
      )
    | (?P<between> (?<=\bfor[ ]) [\w.@-]{{1,100}}+ (?=[ ]from[ ]) )
    | (?P<states> \b from[ ][A-Z][A-Z_]{{1,40}}+[ ]to[ ][A-Z][A-Z_]{{1,40}}+ (?!\w) )
    | (?P<process> (?<=process[ ]) \d{{1,9}}+[ ]\([\w.:/@-]{{1,60}}+\) )
    | (?P<word> [^\s=<>"'`\u2018\u2019\u201c\u201d\xab\xbb,;()\[\]{{}}|]++ )
    """,
    re.VERBOSE,
)

_TELLING_KEYS: Final = frozenset(
    "code errno err error reason msg message level type status kind cause syscall severity".split()
)
"""Of `key=value`, the keys whose values say what happened."""

_NOT_NAMES: Final = frozenset(
    """
    a an and any are as at be because before but by can cannot could did died does doing done down
    during each either error errors exited exists expected failed failure fails file files for found from
    gone group had has have he id if in inside into invalid is it itself key keys left limit limits list
    login lookup manager may missing must name names never no none nor not now of off offline on only or
    out over path process quota refused rejected removed requires resolution responded resource returned
    said seems service shut so started starting state status stopped stopping such terminated than that
    the their then there this timed timeout to too type unavailable undefined unexpected unknown
    unreachable until up use used using version was were when where which while will with without would
    you your
    """.split()
)

_NOTHING: Final = frozenset({"none", "nil", "nonetype", "nilclass"})
"""Quoted, these are no values but the absence of one, which is what the error is about."""

_VALUES: Final = frozenset({"localhost", "true", "false"})
"""Words that are values."""

_ONE_SLASH_WORDS: Final = frozenset({"and/or", "i/o", "n/a", "tcp/ip", "read/write", "input/output", "r/w"})
_DOTTED_WORDS: Final = frozenset({"e.g", "i.e", "etc", "vs"})

_TYPE_NAME: Final = re.compile(
    r"(?:[\w$]{1,80}+(?:::|[./\\])){0,20}"
    r"([A-Za-z_]\w{0,80}(?:Error|Exception|Warning|Fault|Failure|Violation|Interrupt))(?!\w)"
)
_FOREIGN: Final = re.compile(r"[^\x00-\x7f]")
_DIGITS: Final = re.compile(r"\d+")
_DOTTED: Final = re.compile(r"\w\.\w")
_ADDRESS: Final = re.compile(r"[\w-]*+\.[\w.-]*+:|[\w.-]++:[A-Za-z_.-]*+\d[\w.-]*+\Z")
"""`main.go:12:5`, `com.acme:core:jar:2.1`, `db:5432`, `node:21-slim`: one name, whatever its parts are."""
_SCOPED: Final = re.compile(r"[A-Z]\w*+::\w")
_COLONS: Final = re.compile(r"(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f.]{0,15}")
"""Addresses of network cards, and of version 6."""
_LINKER_OPTION: Final = re.compile(r"-[lL][\w./+-]++")
_ENDS: Final = ".,:;!?"
_PASSES: Final = 8


def mask(text: str) -> str:
    """The text with a hole for each thing that changes from run to run.

    Masking twice is masking once: a pass is repeated while it still finds something, which a
    hole that uncovers its neighbour may bring about.
    """
    for _ in range(_PASSES):
        masked = _SCANNER.sub(_masked, text)
        if masked == text:
            return text
        text = masked
    return HOLE


def _masked(found: re.Match[str]) -> str:  # noqa: PLR0911 - one return a kind
    match found.lastgroup:
        case "hole" | "code" | "status":
            return found[0]
        case "quoted":
            return _of_quoted(found)
        case "pair":
            told = found["key"].lower() in _TELLING_KEYS
            return f"{found['key']}={_of_word(found['value']) if told else HOLE}"
        case "named":
            name = found["name"]
            hidden = _of_word(name) if _is_no_name(name) else HOLE + _tail(name)
            return f"{found['noun']}{found['gap']}{hidden}"
        case "states":
            return f"from {HOLE} to {HOLE}"
        case "word":
            return _of_word(found[0])
        case "path" | "url":
            return HOLE + _tail(found[0])
        case _:
            return HOLE


def _of_quoted(found: re.Match[str]) -> str:
    inside = next(
        (found[name] for name in ("double", "single", "tick", "curly") if found[name] is not None), ""
    )
    return inside if inside.lower() in _NOTHING else HOLE


def _is_no_name(name: str) -> bool:
    return name.rstrip(_ENDS).lower() in _NOT_NAMES


def _of_word(word: str) -> str:
    """The word, or a hole, or its part that stays the same; punctuation at its end is kept."""
    if word.isalpha() and word.isascii():
        return HOLE if word.lower() in _VALUES else word
    core = word.rstrip(_ENDS)
    return _of_core(core) + word[len(core) :]


def _of_core(core: str) -> str:
    if _FOREIGN.search(core):
        # A sentence may stand here: many scripts put no spaces between words.
        return _DIGITS.sub(HOLE, core)
    if typed := _TYPE_NAME.fullmatch(core):
        return typed[1]
    if any(mark in core for mark in "/\\@"):
        return core if core.lower() in _ONE_SLASH_WORDS else HOLE
    if _COLONS.fullmatch(core) or _LINKER_OPTION.fullmatch(core):
        return HOLE
    if ":" in core and not _ADDRESS.match(core) and not _SCOPED.match(core):
        return ":".join(_of_part(part) for part in core.split(":"))
    return _of_part(core)


def _of_part(part: str) -> str:
    if _DIGITS.search(part) or part.lower() in _VALUES:
        return HOLE
    if _SCOPED.search(part) or (_DOTTED.search(part) and part.lower() not in _DOTTED_WORDS):
        return HOLE
    return part


def _tail(word: str) -> str:
    return word[len(word.rstrip(_ENDS)) :]


_NAME: Final = re.compile(r"[^\s=<>\"'`\u2018\u2019\u201c\u201d\xab\xbb,;()\[\]{}|]++")
_LETTERS: Final = re.compile(r"[^\W\d_]")


def essence(text: str) -> str:
    """What a model should read of an error: its words and names, without what changes from run to run.

    Unlike `mask` it keeps quoted values, modules and the names of files: they are what an error is about.
    """
    kept = (_kept(token) for token in _NAME.findall(text.replace(HOLE, " ")))
    return " ".join(filter(None, kept))


def _kept(token: str) -> str:
    last = token.replace("\\", "/").rstrip(_ENDS + "/").rpartition("/")[2].partition(":")[0]
    core = last or token.strip(_ENDS)
    letters = len(_LETTERS.findall(core))
    return core if letters > len(core) // 2 else ""
