"""Commands that remove, overwrite or lock away files."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from contextd.domain.command_risk.options import has_flag, operand_indexes, operands, option_values
from contextd.domain.command_risk.places import (
    is_block_device,
    is_harmless_device,
    is_identity,
    is_precious,
    is_system,
)
from contextd.domain.command_risk.syntax import Call, Command, Danger, Finding, Note, Rule, Runs, Word

_MODE: Final = re.compile(
    r"0?[0-7]?(?:777|666|000)|[ugo]*[ao][ugoa]*[+=][rwxXst]*w[rwxXst]*|a?-[wxXst]*r[wxXst]*"
)
_EMPTYING: Final = frozenset(("", ":", "true"))
_NOTHING: Final = (["cat", "/dev/null"], ["echo"], ["echo", "-n"], ["printf", ""])
SYSTEM: Final = "reaches the root, a system folder or a whole home"


def removal(call: Call) -> Iterator[Finding]:
    """Named files are a note; trees, what a pattern matches and what is precious are a danger."""
    texts = call.texts
    if texts and all(text in ("--help", "--version") for text in texts):
        return
    targets = [call.args[index] for index in operand_indexes(texts)]
    if has_flag(texts, "--no-preserve-root"):
        yield Danger("switches off the guard of the root folder")
    if has_flag(texts, "-r", "-R", "--recursive") or _abbreviates(texts, "--recursive"):
        yield Danger("removes folders with everything in them; nothing is kept")
        if any(is_system(word.text) for word in targets):
            yield Danger(SYSTEM)
    elif call.many or any(word.glob for word in targets):
        yield Danger("removes every file that a pattern or a list names; nothing is kept")
    elif any(is_system(word.text) or is_precious(word.text) for word in targets):
        yield Danger("removes a file that the system, a repository or an identity depends on")
    elif targets:
        yield Note("removes the files it names; nothing is kept")


def windows_removal(call: Call) -> Iterator[Finding]:
    lowered = [text.lower() for text in call.texts]
    if any(text in ("/s", "/q", "/f") for text in lowered) or any("*" in text for text in lowered):
        yield Danger("removes folders or every file that a pattern matches; nothing is kept")


def powershell_removal(call: Call) -> Iterator[Finding]:
    lowered = [text.lower() for text in call.texts]
    if any(len(text) > 2 and "-recurse".startswith(text) for text in lowered) or any(
        "*" in t for t in lowered
    ):
        yield Danger("removes folders with everything in them; nothing is kept")
    elif lowered:
        yield Note("removes the items it names; nothing is kept")


def always(reason: str) -> Rule:
    def rule(call: Call) -> Iterator[Finding]:
        if not has_flag(call.texts, "--help", "--version"):
            yield Danger(reason)

    return rule


def copying_blocks(call: Call) -> Iterator[Finding]:
    for text in call.texts:
        if text.startswith("of=") and not is_harmless_device(text[3:]):
            yield Danger("overwrites the file or the device behind of= from its first byte")


def partitioning(call: Call) -> Iterator[Finding]:
    """Disk tools are read-only in few ways."""
    reading = {"-l", "--list", "-d", "--dump", "-p", "--print", "print", "--help", "--version", "-V", "-s"}
    devices = [text for text in call.texts if text.startswith("/dev/")]
    shown = reading - ({"-s"} if call.program == "parted" else set())
    if (devices or call.stdin is not None) and not shown & set(call.texts):
        yield Danger("changes the partitions of a disk")


def signatures(call: Call) -> Iterator[Finding]:
    if has_flag(call.texts, "-a", "--all", "-o", "--offset") and not has_flag(call.texts, "-n", "--no-act"):
        yield Danger("erases the signatures by which a disk's file systems are found")


def permissions(call: Call) -> Iterator[Finding]:
    texts = call.texts
    recursive = has_flag(texts, "-R", "--recursive") or _abbreviates(texts, "--recursive")
    named = [word for word in call.args if not word.text.startswith("-") or word.text in ("-r", "-rwx")]
    mode, *targets = [word.text for word in named] or [""]
    many = call.many or any(word.glob for word in named)
    if (
        call.program == "chmod"
        and _opens_wide(mode)
        and (recursive or many or any(map(is_system, targets)))
    ):
        yield Danger(
            "gives everybody, or nobody, the right to these files, and keeps no record of the old rights"
        )
    if recursive and any(is_system(target) for target in targets):
        yield Danger("changes rights or owners below a system folder or a whole home")


def moving(call: Call) -> Iterator[Finding]:
    targets = operands(call.texts, frozenset({"-S", "--suffix"}))
    if call.program == "mv" and targets[1:] and is_harmless_device(targets[-1]):
        yield Danger("moves files to where nothing is kept")
    if call.program == "mv" and any(map(is_system, targets[:-1])):
        yield Danger("moves a system folder or a whole home away")
    if targets[1:] and is_block_device(targets[-1]):
        yield Danger("writes over a disk")
    if call.program == "cp" and targets[:1] == ["/dev/null"] and targets[1:]:
        yield Danger("empties a file")


def tee(call: Call) -> Iterator[Finding]:
    appends = has_flag(call.texts, "-a", "--append")
    for target in operands(call.texts):
        if is_block_device(target):
            yield Danger("writes over a disk")
        elif not appends and _is_guarded(target):
            yield Danger("overwrites a file that the system or an identity depends on")


def emptying(call: Call) -> Iterator[Finding]:
    sizes = [word.text for word in option_values(call.args, "-s", "--size")]
    if any(not size.startswith(("+", "%")) for size in sizes):
        yield Danger("cuts files down; what is cut off is gone")


def archiving(call: Call) -> Iterator[Finding]:
    if has_flag(call.texts, "--remove-files"):
        yield Danger("removes the files after they are archived")
    for text in call.texts:
        if text.startswith("--checkpoint-action=exec="):
            yield Runs(text.removeprefix("--checkpoint-action=exec="))
        if text.startswith(("--to-command=", "--use-compress-program=")):
            yield Runs(text.partition("=")[2])


def mirroring(call: Call) -> Iterator[Finding]:
    texts = call.texts
    deletes = any(text.startswith(("--del", "--remove-source-files")) for text in texts)
    if deletes and not has_flag(texts, "-n", "--dry-run"):
        yield Danger("deletes what is missing on the other side")


def zipping(call: Call) -> Iterator[Finding]:
    if any(re.fullmatch(r"-\w*m\w*", text) or text in ("--move", "-sdel") for text in call.texts):
        yield Danger("removes the files after they are archived")


def redirection(command: Command) -> Iterator[Finding]:
    """`> file`: emptying a file is a danger; writing a result to an ordinary file is not."""
    for redirect in command.redirects:
        target = redirect.target
        if redirect.sign not in (">", ">|", "&>", "<>", ">>", "&>>") or not target.text:
            continue
        if is_block_device(target.text) or target.text == "/proc/sysrq-trigger":
            yield Danger("writes over a disk or into the kernel")
        elif redirect.sign in (">>", "&>>", "<>") or is_harmless_device(target.text):
            continue
        elif _is_guarded(target.text):
            yield Danger("overwrites a file that the system, a repository or an identity depends on")
        elif not command.grouped and _writes_nothing(command):
            yield Danger("empties a file")


def _writes_nothing(command: Command) -> bool:
    texts = [word.text for word in command.words]
    return command.program in _EMPTYING or texts in _NOTHING


def _is_guarded(path: str) -> bool:
    return not is_harmless_device(path) and (is_system(path) or is_identity(path))


def _opens_wide(mode: str) -> bool:
    return any(_MODE.fullmatch(clause) for clause in mode.split(","))


def _abbreviates(texts: list[str], flag: str) -> bool:
    """GNU programs take any beginning of a long option that is clear."""
    return any(len(text) > 2 and flag.startswith(text) for text in texts if text.startswith("--"))


def unlinking(call: Call) -> Iterator[Finding]:
    targets: list[Word] = list(call.args)
    if call.many or any(is_system(word.text) or is_precious(word.text) for word in targets):
        yield Danger("removes a file that may be missed; nothing is kept")
    elif targets:
        yield Note("removes the file it names; nothing is kept")


RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(("rm", "grm"), removal),
    "unlink": unlinking,
    **dict.fromkeys(("del", "erase", "rd", "rmdir"), windows_removal),
    **dict.fromkeys(("remove-item", "ri"), powershell_removal),
    **dict.fromkeys(
        ("shred", "srm", "wipe", "scrub"), always("overwrites files so that nothing can bring them back")
    ),
    **dict.fromkeys(
        ("rimraf", "del-cli"), always("removes folders with everything in them; nothing is kept")
    ),
    **dict.fromkeys(("mke2fs", "mkswap", "newfs", "blkdiscard"), always("erases a disk or a partition")),
    **dict.fromkeys(("format-volume", "clear-disk", "diskpart"), always("erases a disk or a partition")),
    "trash-empty": always("empties the trash; nothing is kept"),
    **dict.fromkeys(("dd", "gdd", "dcfldd"), copying_blocks),
    **dict.fromkeys(("fdisk", "sfdisk", "gdisk", "sgdisk", "cfdisk", "parted"), partitioning),
    "wipefs": signatures,
    **dict.fromkeys(("chmod", "chown", "chgrp", "gchmod", "gchown"), permissions),
    **dict.fromkeys(("mv", "cp", "gmv", "gcp"), moving),
    "tee": tee,
    **dict.fromkeys(("tar", "gtar", "bsdtar"), archiving),
    "rsync": mirroring,
    **dict.fromkeys(("zip", "7z"), zipping),
    "truncate": emptying,
}
