"""What git does that git cannot undo, or not for others."""

from collections.abc import Iterator
from typing import Final

from contextd.domain.command_risk.options import has_flag, operands, option_values
from contextd.domain.command_risk.syntax import Call, Danger, Finding, Note, Runs, Wraps

_GLOBAL_VALUES: Final = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"))
_LOST_CHANGES: Final = "throws away changes that are not committed"


def git(call: Call) -> Iterator[Finding]:
    texts = call.texts
    at = _subcommand_index(texts)
    for word in option_values(call.args[:at], "-c"):
        _, _, value = word.text.partition("=")
        if value.startswith("!"):
            yield Runs(value[1:])
    if at >= len(texts):
        return
    verb, rest = texts[at], texts[at + 1 :]
    if "--help" in rest:
        return
    judge = _VERBS.get(verb)
    if judge:
        yield from judge(rest)
    yield from _nested(verb, call, at)


def _subcommand_index(texts: list[str]) -> int:
    index = 0
    while index < len(texts) and texts[index].startswith("-"):
        index += 2 if texts[index] in _GLOBAL_VALUES else 1
    return index


def _nested(verb: str, call: Call, at: int) -> Iterator[Finding]:
    texts = call.texts
    if verb == "submodule" and "foreach" in texts:
        yield Runs(" ".join(text for text in texts[texts.index("foreach") + 1 :] if text != "--recursive"))
    elif verb == "bisect" and texts[at + 1 : at + 2] == ["run"]:
        yield Wraps(call.args[at + 2 :])
    elif verb == "rebase":
        yield from (Runs(word.text) for word in option_values(call.args[at:], "-x", "--exec"))
    elif verb == "config":
        yield from (Runs(text[1:]) for text in texts[at + 1 :] if text.startswith("!"))


def _push(rest: list[str]) -> Iterator[Finding]:
    if has_flag(rest, "-n", "--dry-run"):
        return
    targets = operands(rest, frozenset({"-o", "--push-option", "--repo", "--receive-pack"}))
    if has_flag(rest, "-f", "--force", "--force-with-lease", "--mirror") or any(
        text.startswith("+") for text in targets
    ):
        yield Danger("rewrites the history of a branch that others may have")
    if has_flag(rest, "-d", "--delete", "--prune") or any(
        text.startswith(":") and text != ":" for text in targets
    ):
        yield Danger("deletes a branch or a tag on the remote")


def _reset(rest: list[str]) -> Iterator[Finding]:
    if has_flag(rest, "--hard"):
        yield Danger(_LOST_CHANGES)


def _clean(rest: list[str]) -> Iterator[Finding]:
    if has_flag(rest, "-f", "--force") and not has_flag(rest, "-n", "--dry-run"):
        yield Danger("removes files that git does not track; git cannot bring them back")


def _checkout(rest: list[str]) -> Iterator[Finding]:
    making = has_flag(rest, "-b", "-B", "--orphan", "--track", "-t", "--detach")
    paths = rest[rest.index("--") + 1 :] if "--" in rest else []
    targets = operands([text for text in rest if text != "--"])
    sides = has_flag(rest, "--ours", "--theirs")
    named = bool(paths) or (not making and (len(targets) > 1 or targets in (["."], [":/"])))
    if has_flag(rest, "-f", "--force") or (named and not sides):
        yield Danger(_LOST_CHANGES)


def _restore(rest: list[str]) -> Iterator[Finding]:
    staged_alone = has_flag(rest, "-S", "--staged") and not has_flag(rest, "-W", "--worktree")
    if rest and not staged_alone:
        yield Danger(_LOST_CHANGES)


def _switch(rest: list[str]) -> Iterator[Finding]:
    if has_flag(rest, "-f", "--force", "--discard-changes"):
        yield Danger(_LOST_CHANGES)


def _branch(rest: list[str]) -> Iterator[Finding]:
    deletes = has_flag(rest, "-d", "--delete") and has_flag(rest, "-f", "--force")
    if has_flag(rest, "-D") or deletes:
        yield Danger("deletes a branch even where its commits are nowhere else")
    elif has_flag(rest, "-f", "--force"):
        yield Danger("moves a branch away from its commits")


def _stash(rest: list[str]) -> Iterator[Finding]:
    if rest[:1] in (["drop"], ["clear"]):
        yield Danger("throws away stashed changes")


def _tag(rest: list[str]) -> Iterator[Finding]:
    if has_flag(rest, "-d", "--delete", "-f", "--force"):
        yield Danger("deletes or moves a tag")


def _remove(rest: list[str]) -> Iterator[Finding]:
    if has_flag(rest, "--cached", "-n", "--dry-run"):
        return
    if has_flag(rest, "-f", "--force"):
        yield Danger(_LOST_CHANGES)
    else:
        yield Note("removes files that the last commit still has")


def _reflog(rest: list[str]) -> Iterator[Finding]:
    if rest[:1] in (["expire"], ["delete"]):
        yield Danger("deletes the record by which lost commits are found")


def _collect(rest: list[str]) -> Iterator[Finding]:
    if any(text in ("--prune=now", "--prune=all", "--aggressive --prune=now") for text in rest):
        yield Danger("deletes commits that no branch names")


def _prune(rest: list[str]) -> Iterator[Finding]:
    if not has_flag(rest, "-n", "--dry-run"):
        yield Danger("deletes commits that no branch names")


def _worktree(rest: list[str]) -> Iterator[Finding]:
    if rest[:1] == ["remove"] and has_flag(rest, "-f", "--force"):
        yield Danger(_LOST_CHANGES)


def _submodule(rest: list[str]) -> Iterator[Finding]:
    if rest[:1] == ["deinit"] and has_flag(rest, "-f", "--force"):
        yield Danger(_LOST_CHANGES)


def _update_ref(rest: list[str]) -> Iterator[Finding]:
    if has_flag(rest, "-d"):
        yield Danger("deletes a reference to commits")


def _rewrite(rest: list[str]) -> Iterator[Finding]:
    yield Danger("rewrites every commit; the old ones are hard to get back")


_VERBS: Final = {
    "push": _push,
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "restore": _restore,
    "switch": _switch,
    "branch": _branch,
    "stash": _stash,
    "tag": _tag,
    "rm": _remove,
    "reflog": _reflog,
    "gc": _collect,
    "prune": _prune,
    "worktree": _worktree,
    "submodule": _submodule,
    "update-ref": _update_ref,
    "filter-branch": _rewrite,
    "filter-repo": _rewrite,
}
