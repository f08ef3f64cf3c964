"""Tells a command's options from its operands."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from contextd.domain.command_risk.syntax import Word

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")


def has_flag(texts: Iterable[str], *flags: str) -> bool:
    """Whether an option is given: `-f` also within `-rf`, `--force` also as `--forc` or `--force=x`."""
    for text in texts:
        if text == "--":
            return False
        if len(text) > 1 and text[0] == "-" and any(_is(text, flag) for flag in flags):
            return True
    return False


def operands(texts: Sequence[str], valued: Collection[str] = ()) -> list[str]:
    """What is left without options; `valued` options take the word after them along."""
    return [texts[index] for index in operand_indexes(texts, valued)]


def operand_indexes(texts: Sequence[str], valued: Collection[str] = ()) -> list[int]:
    indexes: list[int] = []
    skip = False
    for index, text in enumerate(texts):
        if skip:
            skip = False
        elif text == "--":
            return [*indexes, *range(index + 1, len(texts))]
        elif len(text) > 1 and text[0] == "-":
            skip = text in valued
        else:
            indexes.append(index)
    return indexes


def option_values(args: Sequence[Word], *options: str) -> list[Word]:
    """The values given to an option: `-c x`, `-cx`, `-lc x`, `--command x`, `--command=x`."""
    found: list[Word] = []
    for index, word in enumerate(args):
        for option in options:
            if word.text == option or _ends_cluster(word.text, option):
                found.extend(args[index + 1 : index + 2])
            elif value := _attached(word.text, option):
                found.append(Word(value, open=word.open, scripts=word.scripts))
    return found


def command_start(texts: Sequence[str], valued: Collection[str], skip: int, assigns: bool = False) -> int:
    """Where the wrapped command begins: past options, their values, assignments and `skip` operands."""
    index = 0
    while index < len(texts):
        text = texts[index]
        if text in valued:
            index += 2
        elif (text.startswith("-") and len(text) > 1) or (assigns and _ASSIGNMENT.match(text)):
            index += 1
        elif skip:
            skip -= 1
            index += 1
        else:
            break
    return index


def _is(text: str, flag: str) -> bool:
    given = text.split("=", 1)[0]
    if flag.startswith("--"):
        return flag == given or (len(given) >= 5 and flag.startswith(given))
    return flag in (text, given) or (len(flag) == 2 and text[1] != "-" and flag[1] in given)


def _ends_cluster(text: str, option: str) -> bool:
    return (
        len(option) == 2
        and text[:1] == "-"
        and text[1:2] != "-"
        and text[1:].isalpha()
        and text[-1] == option[1]
    )


def _attached(text: str, option: str) -> str:
    if option.startswith("--"):
        return text[len(option) + 1 :] if text.startswith(option + "=") else ""
    return text[2:] if len(option) == 2 and text.startswith(option) else ""
