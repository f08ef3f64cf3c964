"""Programs with sub-commands, judged by a table: one row, one way to lose something.

A row is written like the command: the program, its sub-commands in order, then the options that
make it dangerous. `a|b` is either; every group of options must be there.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from contextd.domain.command_risk.options import has_flag, operand_indexes
from contextd.domain.command_risk.row_table import DRY_RUNS, ROWS, VALUED
from contextd.domain.command_risk.syntax import Call, Danger, Finding, Rule, Wraps


@dataclass(frozen=True, slots=True)
class Row:
    words: tuple[frozenset[str], ...]
    flags: tuple[tuple[str, ...], ...]
    reason: str

    def fits(self, words: list[str], texts: list[str]) -> bool:
        return (
            len(words) >= len(self.words)
            and all(word.lower() in choices for word, choices in zip(words, self.words, strict=False))
            and all(has_flag(texts, *flags) for flags in self.flags)
        )


def by_table(call: Call) -> Iterator[Finding]:
    texts = call.texts
    if has_flag(texts, "--help") or _is_dry(call.program, texts):
        return
    indexes = operand_indexes(texts, VALUED.get(call.program, frozenset()))
    words = [texts[index] for index in indexes]
    for row in _table()[call.program]:
        if row.fits(words, texts):
            yield Danger(row.reason)


def containers(call: Call) -> Iterator[Finding]:
    """docker, podman: the compose plug-in is a program of its own, and a container runs a command."""
    texts = call.texts
    indexes = operand_indexes(texts, VALUED["docker"])
    words = [texts[index] for index in indexes]
    if words[:1] == ["container"]:
        yield from containers(Call(call.program, call.args[indexes[0] + 1 :]))
    elif words[:1] == ["compose"]:
        yield from compose(Call("docker-compose", call.args[indexes[0] + 1 :], call.stdin))
    elif words[:1] in (["exec"], ["run"]) and len(words) > 1:
        yield from _inside(call, indexes)
    yield from by_table(Call("docker", call.args))


def compose(call: Call) -> Iterator[Finding]:
    indexes = operand_indexes(call.texts, VALUED["docker-compose"])
    if indexes and call.texts[indexes[0]] in ("exec", "run"):
        yield from _inside(call, indexes)
    yield from by_table(Call("docker-compose", call.args))


def cluster(call: Call) -> Iterator[Finding]:
    """kubectl and its kin; after `exec … --` stands a command of its own."""
    texts = call.texts
    if "exec" in texts and "--" in texts:
        yield Wraps(call.args[texts.index("--") + 1 :])
        return
    yield from by_table(Call("kubectl", call.args))


def nested_cluster(call: Call) -> Iterator[Finding]:
    """`minikube kubectl -- delete …`"""
    if call.texts[:1] == ["kubectl"]:
        yield from cluster(Call("kubectl", tuple(word for word in call.args[1:] if word.text != "--")))
    if call.program in _table():
        yield from by_table(call)


def _inside(call: Call, indexes: list[int]) -> Iterator[Finding]:
    """The words after the container or the image are the command."""
    valued = frozenset(
        "-e -v -w -u -p -l -h -m --env --volume --workdir --user --publish --name --network --mount "
        "--env-file --entrypoint --platform --label --hostname --memory --cpus --add-host --pull".split()
    )
    rest = call.args[indexes[0] + 1 :]
    texts = [word.text for word in rest]
    at = 0
    while at < len(texts) and texts[at].startswith("-"):
        if texts[at] == "--entrypoint":
            yield Wraps((*rest[at + 1 : at + 2], *rest[at + 3 :]))
        at += 2 if texts[at] in valued else 1
    if at + 1 < len(rest):
        yield Wraps(rest[at + 1 :])


def _is_dry(program: str, texts: list[str]) -> bool:
    flags = DRY_RUNS.get(program, ())
    return any(
        text in flags or (text.split("=")[0] in flags and text.split("=")[1:] not in (["none"], ["false"]))
        for text in texts
    )


@cache
def _table() -> Mapping[str, tuple[Row, ...]]:
    table: dict[str, list[Row]] = {}
    for reason, lines in ROWS.items():
        for line in lines.strip().splitlines():
            programs, *rest = line.split()
            words = tuple(frozenset(part.split("|")) for part in rest if not part.startswith("-"))
            flags = tuple(tuple(part.split("|")) for part in rest if part.startswith("-"))
            for program in programs.split("|"):
                table.setdefault(program, []).append(Row(words, flags, reason))
            for task in _tasks(words):
                table.setdefault(task, []).append(Row((), flags, reason))
    return {program: tuple(rows) for program, rows in table.items()}


def _tasks(words: tuple[frozenset[str], ...]) -> list[str]:
    """`db:drop` means one thing whoever runs it, so it counts without its program too."""
    return sorted(word for word in words[0] if re.fullmatch(r"\w+:[\w:]+", word)) if words[:1] else []


def rules() -> Mapping[str, Rule]:
    return {
        **dict.fromkeys(_table(), by_table),
        **dict.fromkeys(("docker", "podman", "nerdctl", "finch"), containers),
        **dict.fromkeys(("docker-compose", "podman-compose"), compose),
        **dict.fromkeys(("kubectl", "oc", "k", "kubecolor"), cluster),
        **dict.fromkeys(("minikube", "microk8s", "k3s"), nested_cluster),
    }
