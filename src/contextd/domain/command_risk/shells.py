"""Programs that take a script: as an argument, from a file or down a pipe."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Final

from contextd.domain.command_risk.options import command_start, operand_indexes, option_values
from contextd.domain.command_risk.syntax import Call, Danger, Finding, Note, Rule, Runs, Word, Wraps

_SHELLS: Final = frozenset("sh bash zsh dash ksh mksh ash fish csh tcsh rbash".split())
_FETCHERS: Final = frozenset(
    "curl wget fetch aria2c nc ncat socat http https lynx ftp scp ssh base64 xxd openssl gpg gunzip".split()
)
_MOST_LINES: Final = 50


def shell(call: Call) -> Iterator[Finding]:
    """`bash -c '…'`, and a shell that reads its script from a pipe."""
    texts = call.texts
    at = _script_option(texts)
    if at is not None and at < len(texts):
        word = call.args[at]
        given = texts[at + 1 : at + 11]
        names = {str(index): text for index, text in enumerate(given)}
        yield from _runs_word(word, names | dict.fromkeys("@*", " ".join(given[1:])))
        return
    files = operand_indexes(texts, frozenset({"-o", "-O", "--rcfile", "--init-file"}))
    if files and texts[files[0]] not in ("-", "/dev/stdin") and "-s" not in texts:
        yield from _runs_file(call.args[files[0]])
    elif call.stdin is not None:
        yield Runs(call.stdin)
    elif call.fed_by:
        yield _unread(call.fed_by)


def evaluated(call: Call) -> Iterator[Finding]:
    """`eval`, `watch`, `trap`: the words together are a script."""
    words = call.args[command_start(call.texts, frozenset(("-n", "--interval")), 0) :]
    words = words[:1] if call.program == "trap" else words
    joined = Word(
        " ".join(word.text for word in words),
        open=any(word.open for word in words),
        scripts=tuple(script for word in words for script in word.scripts),
    )
    yield from _runs_word(joined, {})


def sourced(call: Call) -> Iterator[Finding]:
    if call.args:
        yield from _runs_file(call.args[0])


def as_user(call: Call) -> Iterator[Finding]:
    """`su -c`, `runuser -c`, `script -c`, `nix-shell --run`."""
    for word in option_values(call.args, "-c", "--command", "--run"):
        yield from _runs_word(word, {})
    if "--" in call.texts:
        yield Wraps(call.args[call.texts.index("--") + 1 :])
    if call.stdin:
        yield Runs(call.stdin)


def scheduled(call: Call) -> Iterator[Finding]:
    """`at` and `batch` read a script; `crontab -` reads lines with a time before each command."""
    if call.stdin is None:
        return
    if call.program != "crontab":
        yield Runs(call.stdin)
        return
    for line in call.stdin.splitlines()[:_MOST_LINES]:
        yield Runs(line.split(None, 5)[5] if len(line.split(None, 5)) > 5 else "")


def powershell(call: Call) -> Iterator[Finding]:
    lowered = [text.lower() for text in call.texts]
    for index, text in enumerate(lowered[:-1]):
        if text in ("-command", "-c", "/c", "/k"):
            yield Runs(" ".join(call.texts[index + 1 :]))
            return
        if len(text) > 1 and "-encodedcommand".startswith(text):
            yield from _encoded(call.texts[index + 1])
            return
    if call.program != "cmd" and call.stdin is None and call.fed_by:
        yield _unread(call.fed_by)


def _encoded(text: str) -> Iterator[Finding]:
    try:
        yield Runs(base64.b64decode(text + "==").decode("utf-16-le"))
    except (binascii.Error, ValueError):
        yield Danger("runs an encoded script that cannot be read here")


def _script_option(texts: list[str]) -> int | None:
    """The index of the script after `-c`, which may stand in a cluster such as `-lc`."""
    for index, text in enumerate(texts):
        if text in ("-o", "-O", "--rcfile", "--init-file"):
            continue
        if text == "--command" or (text[:1] == "-" and text[1:2] != "-" and "c" in text):
            following = index + 1
            while following < len(texts) and texts[following][:1] == "-" and texts[following] != "-":
                following += 1
            return following
        if text[:1] not in ("-", "+") and not _takes_name(texts[index - 1] if index else ""):
            return None
    return None


def _takes_name(option: str) -> bool:
    """`-o pipefail`, also as `-euo pipefail`."""
    return option[:1] in ("-", "+") and option[-1:] in ("o", "O")


def _runs_word(word: Word, variables: Mapping[str, str]) -> Iterator[Finding]:
    if fetched := _programs(word) & _FETCHERS:
        yield Danger(f"runs as a script what {min(fetched)} brings, unseen")
    elif word.open and not word.text.strip("$(){}…\"' "):
        yield Note("runs text that is known only when it runs")
    yield Runs(word.text, variables)


def _runs_file(word: Word) -> Iterator[Finding]:
    if fetched := _programs(word) & _FETCHERS:
        yield Danger(f"runs as a script what {min(fetched)} brings, unseen")


def _programs(word: Word) -> set[str]:
    return {command.program for script in word.scripts for pipeline in script for command in pipeline}


def _unread(fed_by: tuple[str, ...]) -> Finding:
    if set(fed_by) <= {"cat"}:
        return Note("runs a script that is not read here")
    return Danger("runs as a script what another program prints, unseen")


RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(_SHELLS, shell),
    **dict.fromkeys(("eval", "watch", "trap"), evaluated),
    **dict.fromkeys(("source", "."), sourced),
    **dict.fromkeys(("su", "runuser", "sg", "script", "nix-shell", "vagrant"), as_user),
    **dict.fromkeys(("at", "batch", "crontab"), scheduled),
    **dict.fromkeys(("powershell", "pwsh", "cmd"), powershell),
}
