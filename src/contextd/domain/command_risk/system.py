"""Processes, the machine, clouds and requests: what a table of sub-commands does not say."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from contextd.domain.command_risk.options import has_flag, operands, option_values
from contextd.domain.command_risk.row_table import CLOUDS, DRY_RUNS
from contextd.domain.command_risk.syntax import Call, Danger, Finding, Note, Rule, Runs, Wraps

_ENDS: Final = re.compile(
    r"(?:delete|terminate|destroy|purge|erase|remove)(?:-.*)?|schedule-key-deletion|.*:(?:delete|destroy)"
)
_PROBES: Final = frozenset(("-0", "-l", "-L", "--list", "--help"))


def kill(call: Call) -> Iterator[Finding]:
    """One process is a person's business; the first, all of them or none in particular are not."""
    texts = call.texts
    if _PROBES & set(texts):
        return
    targets = texts[1:] if texts[:1] and texts[0].startswith("-") else texts
    targets = [text for text in targets if text != "--"]
    if any(text in ("1", "-1", "0") for text in targets) or texts == ["-1"]:
        yield Danger("ends the first process or every process")
    elif call.many:
        yield Danger("ends every process of a list")
    elif targets:
        yield Note("ends the processes it names")


def kill_by_name(call: Call) -> Iterator[Finding]:
    if call.args and not _PROBES & set(call.texts):
        yield Danger("ends every process that has the name")


def kill_users(call: Call) -> Iterator[Finding]:
    if has_flag(call.texts, "-k", "--kill"):
        yield Danger("ends every process that uses the file or the port")


def shutdown(call: Call) -> Iterator[Finding]:
    if not has_flag(call.texts, "-c", "--help", "-k"):
        yield Danger("stops or restarts the machine")


def cloud(call: Call) -> Iterator[Finding]:
    """Every cloud's program says `delete` when it deletes; the words before the first option decide."""
    texts = call.texts
    if {"--help", "help"} & set(texts) or set(DRY_RUNS["aws"]) & set(texts):
        return
    yield from (Runs(word.text) for word in option_values(call.args, "--command"))
    words = operands(
        texts, frozenset(option for option in texts if option.startswith("--") and "=" not in option)
    )
    if any(_ENDS.fullmatch(word) for word in words[:5]):
        yield Danger("deletes data or resources in the cloud")
    if words[:2] == ["storage", "rm"]:
        yield Danger("deletes data or resources in the cloud")


def request(call: Call) -> Iterator[Finding]:
    """`curl -X DELETE`: a server is asked to delete."""
    methods = [word.text for word in option_values(call.args, "-X", "--request", "--method")]
    named = methods or (
        [text for text in call.texts if text.isupper()][:1] if call.program != "curl" else []
    )
    if any(method.strip("'\"").upper() == "DELETE" for method in named):
        yield Danger("asks a server to delete")


def formatting(call: Call) -> Iterator[Finding]:
    if any(re.fullmatch(r"[A-Za-z]:", text) for text in call.texts):
        yield Danger("erases a disk or a partition")


def aliasing(call: Call) -> Iterator[Finding]:
    for text in call.texts:
        _, assigns, value = text.partition("=")
        if assigns:
            yield Runs(value)


def script_file(call: Call) -> Iterator[Finding]:
    """`python manage.py flush`, `php artisan migrate:fresh`: the script is the program."""
    texts = call.texts
    if texts and not texts[0].startswith("-"):
        yield Wraps(call.args)
    elif texts[:1] == ["-m"] and texts[1:2] and texts[1] not in ("pip", "pytest"):
        yield Wraps(call.args[1:])


def package_removal(call: Call) -> Iterator[Finding]:
    if call.texts[:1] and call.texts[0] in ("uninstall", "remove", "rm", "un"):
        yield Note("removes packages of the project or the environment; they can be installed again")


def on_hosts(call: Call) -> Iterator[Finding]:
    """`ansible all -m shell -a '…'` runs the text on every host."""
    modules = [word.text for word in option_values(call.args, "-m", "--module-name")]
    if not modules or modules[0].rpartition(".")[2] in ("shell", "command", "raw"):
        yield from (Runs(word.text) for word in option_values(call.args, "-a", "--args"))


def editor(call: Call) -> Iterator[Finding]:
    for text in call.texts:
        if match := re.match(r"\+?:?!(.+)", text):
            yield Runs(match[1])


RULES: Final[Mapping[str, Rule]] = {
    "kill": kill,
    **dict.fromkeys(("pkill", "killall", "taskkill", "stop-process", "skill"), kill_by_name),
    "fuser": kill_users,
    "shutdown": shutdown,
    **dict.fromkeys(CLOUDS, cloud),
    **dict.fromkeys(("curl", "wget", "http", "https", "xh", "gh"), request),
    "format": formatting,
    "alias": aliasing,
    **dict.fromkeys(("python", "pypy", "php"), script_file),
    **dict.fromkeys(
        ("pip", "pipx", "npm", "pnpm", "yarn", "gem", "cargo", "uv", "poetry", "bun"), package_removal
    ),
    "ansible": on_hosts,
    **dict.fromkeys(("vim", "vi", "nvim", "ex"), editor),
}
