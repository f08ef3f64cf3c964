"""Programs that run another command: what they run is judged, not they."""

from collections.abc import Iterator, Mapping
from typing import Final

from contextd.domain.command_risk.options import command_start, option_values
from contextd.domain.command_risk.syntax import Call, Danger, Finding, Rule, Runs, Word, Wraps

_MOST_APPENDED: Final = 50
_FIND_EXEC: Final = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_FD_EXEC: Final = frozenset(("-x", "-X", "--exec", "--exec-batch"))

# Each wrapper with those of its options that take a value in the next word, and how many operands
# come before the command.
_TRANSPARENT: Final[Mapping[str, tuple[str, int]]] = {
    "sudo": ("-u -g -h -p -C -r -t -U -D -T --user --group --host --prompt --chdir", 0),
    "doas": ("-u -C", 0),
    "pkexec": ("--user", 0),
    "env": ("-u -C --unset --chdir", 0),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n --class --classdata", 0),
    "chrt": ("", 1),
    "taskset": ("", 1),
    "time": ("-f -o --format --output", 0),
    "timeout": ("-s -k --signal --kill-after", 1),
    "gtimeout": ("-s -k --signal --kill-after", 1),
    "stdbuf": ("-i -o -e", 0),
    "chroot": ("", 1),
    "unshare": ("", 0),
    "nsenter": ("-t --target", 0),
    "systemd-run": ("-u -p --unit --property", 0),
    "fakeroot": ("", 0),
    "proot": ("-r -b -w", 0),
    "strace": ("-e -o -p", 0),
    "ltrace": ("-e -o", 0),
    "gdb": ("-ex", 0),
    "valgrind": ("", 0),
    "caffeinate": ("-t -w", 0),
    "unbuffer": ("", 0),
    "chronic": ("", 0),
    "catchsegv": ("", 0),
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("-a", 0),
    "busybox": ("", 0),
    "toybox": ("", 0),
    "flock": ("-w -E --timeout --conflict-exit-code", 1),
    "npx": ("-p --package", 0),
    "pnpx": ("-p --package", 0),
    "bunx": ("", 0),
    "dotenv": ("-f -e", 0),
    "cross-env": ("", 0),
    "shx": ("", 0),
    "sshpass": ("-p -f", 0),
    "xvfb-run": ("-s -n", 0),
    "proxychains4": ("", 0),
    "firejail": ("", 0),
    "dumb-init": ("", 0),
    "tini": ("", 0),
    "gosu": ("", 1),
    "su-exec": ("", 1),
    "wsl": ("-d -u", 0),
    # Not programs: words of the grammar and of a prompt, where they are met after a wrapper.
    **dict.fromkeys(("{", "!", "if", "then", "do", "$", "%"), ("", 0)),
}
_RUNNERS: Final = frozenset(
    f"{program} {verb}"
    for verb, programs in {
        "run": "uv poetry pipenv pdm rye hatch nix heroku",
        "exec": "bundle npm pnpm yarn mise rbenv pyenv",
        "dlx": "pnpm yarn",
    }.items()
    for program in programs.split()
)


def transparent(call: Call) -> Iterator[Finding]:
    """`sudo -u root rm -rf /` is judged as `rm -rf /`."""
    valued, skip = _TRANSPARENT[call.program]
    texts = call.texts
    if call.program == "command" and texts[:1] in (["-v"], ["-V"]):
        return
    if call.program == "env":
        yield from (Runs(word.text) for word in option_values(call.args, "-S", "--split-string"))
    if call.program == "flock":
        yield from (Runs(word.text) for word in option_values(call.args, "-c", "--command"))
    start = command_start(texts, frozenset(valued.split()), skip, assigns=True)
    if start < len(texts):
        yield Wraps(call.args[start:])
    elif call.program in ("sudo", "doas") and call.stdin:
        yield Runs(call.stdin)


def runner(call: Call) -> Iterator[Finding]:
    """`poetry run …`, `bundle exec …`: a wrapper of two words."""
    if call.args and f"{call.program} {call.args[0].text}" in _RUNNERS:
        yield Wraps(call.args[1 + command_start(call.texts[1:], frozenset({"--with", "--package"}), 0) :])


def remote(call: Call) -> Iterator[Finding]:
    """`ssh host command`: what runs there is judged as if it ran here."""
    for word in option_values(call.args, "-o"):
        name, _, value = word.text.partition("=")
        if name.lower() in ("proxycommand", "localcommand"):
            yield Runs(value)
    valued = frozenset(f"-{letter}" for letter in "BbcDEeFIiJLlmOopQRSWw")
    start = command_start(call.texts, valued, 1)
    if start < len(call.args):
        yield Runs(" ".join(call.texts[start:]), stdin=call.stdin)
    elif call.stdin is not None:
        yield Runs(call.stdin)


def for_each(call: Call) -> Iterator[Finding]:
    """`xargs` and `parallel`: the command runs for whatever comes down the pipe."""
    valued = frozenset("-I -n -P -d -a -L -E -s -j --replace --max-args --max-procs --delimiter".split())
    start = command_start(call.texts, valued, 0)
    words = list(call.args[start:])
    holes = {word.text for word in option_values(call.args[:start], "-I", "--replace")} | {"{}"}
    if call.stdin is not None and words:
        words = _filled(words, holes, call.stdin)
    if words and call.program == "parallel" and ":::" not in words[0].text:
        yield Runs(" ".join(word.text for word in words))
    if words:
        yield Wraps(tuple(words), many=True, keeps_stdin=False)


def found(call: Call) -> Iterator[Finding]:
    """`find -exec … ;` and `find -delete`."""
    texts = call.texts
    if "-delete" in texts:
        yield Danger("deletes every file that find matches")
    options = _FD_EXEC if call.program in ("fd", "fdfind") else _FIND_EXEC
    index = 0
    while index < len(texts):
        index += 1
        if texts[index - 1] in options:
            words = _up_to_end(call.args[index:])
            yield Wraps(words, many=True, keeps_stdin=False)
            index += len(words)


def behind_dashes(call: Call) -> Iterator[Finding]:
    """`lxc exec box -- …`: what stands after the two dashes runs."""
    if "--" in call.texts:
        yield Wraps(call.args[call.texts.index("--") + 1 :])


def typed(call: Call) -> Iterator[Finding]:
    """`tmux send-keys '…' Enter`, `screen -dm …`, `adb shell …`: text for a shell among other words."""
    yield from (Runs(text) for text in call.texts[:_MOST_APPENDED])
    yield Wraps(
        call.args[command_start(call.texts, frozenset(("-S", "-t", "-c")), call.program == "adb") :]
    )


def _filled(words: list[Word], holes: set[str], stdin: str) -> list[Word]:
    line = stdin.strip()
    if any(hole in word.text for word in words for hole in holes):
        for hole in holes:
            words = [Word(word.text.replace(hole, line), word.glob, word.open) for word in words]
        return words
    return words + [Word(part) for part in line.split()[:_MOST_APPENDED]]


def _up_to_end(words: tuple[Word, ...]) -> tuple[Word, ...]:
    for index, word in enumerate(words):
        if word.text in (";", "+"):
            return words[:index]
    return words


RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(_TRANSPARENT, transparent),
    **{program.split()[0]: runner for program in _RUNNERS},
    **dict.fromkeys(("ssh", "autossh", "mosh"), remote),
    **dict.fromkeys(("xargs", "gxargs", "parallel"), for_each),
    **dict.fromkeys(("find", "gfind", "fd", "fdfind", "bfs"), found),
    **dict.fromkeys(("lxc", "multipass", "distrobox", "toolbox"), behind_dashes),
    **dict.fromkeys(("tmux", "screen", "adb"), typed),
}
