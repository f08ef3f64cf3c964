"""Commands that a text names: behind a prompt, in backticks, in a shell's block, after `Tests:` or `run`.

What marks a command decides how much it takes to believe it: a prompt needs little, prose needs a known
program and words that can be nothing but its arguments.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from contextd.services.command_lines import is_command_line, is_command_span
from contextd.services.named_files import is_source_file
from contextd.services.noted_blocks import PROMPT, Block
from contextd.services.statements import sentences

_LONGEST: Final = 300
_MOST_WORDS: Final = 14
_LONGEST_PROSE: Final = 20_000

LABELLED: Final = 1.5
RUN: Final = 1.0
LOOKED: Final = 0.3
"""A command that only looks says little about how the work goes on."""

_QUOTE_PROMPT: Final = re.compile(r"\s{0,3}>\s+(\S.*)")
_TOOL_CALL: Final = re.compile(r"\W{0,4}(?:Bash|Shell|Run)\((.{2,300})\)\s*\Z")
_SPAN: Final = re.compile(r"(?<!`)`([^`\n]{2,300})`(?![`_])")
_LABEL: Final = re.compile(
    r"\b(?:tests?|builds?|run|lint(?:er)?|start|serve|deploy|verify|verified with|checks?|commands?|cmd"
    r"|bench(?:mark)?s?|format|types?|typecheck|migrate|migrations?|reproduce|usage|to (?:run|test|build))"
    r"(?: (?:commands?|with|by))?\s*:\s+(\S[^\n]{1,300})",
    re.IGNORECASE,
)
_RUN_VERB: Final = re.compile(
    r"\b(?:re-?run(?:ning)?|ran|run|running|runs|execut(?:e|ed|es|ing))\s+(?=[a-z./])", re.IGNORECASE
)
_SAYS_RUN: Final = re.compile(
    r"(?:\b(?:re-?run(?:ning)?|ran|run|running|execut(?:e|ed|ing)|with|via|command|tests?|build)\W{0,3})\Z",
    re.IGNORECASE,
)
_RUN_KEY: Final = re.compile(
    r"command|cmd|tests?|build|run|lint|start|serve|deploy|verify|check|script|make|bench|format|migrat",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_CODE: Final = re.compile(r"\s=\s|=>|:=|[{;(]\s*\Z|\w\(\w*\)|\A[\w.]+\(")
_ASSIGNED: Final = re.compile(r"\A(?:[A-Z_][A-Z0-9_]*=\S*\s+)+")
_SENTENCE_END: Final = re.compile(r"\w[.?!:]\Z")
_COMMENT: Final = re.compile(r"\s+#\s.*\Z")
_TRAILING: Final = re.compile(r"(?<=[\w\"'\])])[.,;:]\Z|(?<=/\.\.\.)[.,;:]\Z")
_RUNNABLE: Final = re.compile(r"(?:\.{1,2}/|(?:\.venv/|node_modules/\.)?bin/|scripts?/|~/)[\w./+-]+\Z")
_MAKE: Final = re.compile(r"make(?: [\w./:=%+-]+){1,5}\Z")
_SEVERAL: Final = re.compile(r",\s+(?:and\s+|then\s+)?|\s+(?:and|then)\s+|;\s+")

_MARKED_PROGRAMS: Final = frozenset(
    """
    just task stack act fly air dart black mix zig buf migrate goose sqlc prisma turbo nx lerna rake
    """.split()
)
"""Programs whose names are words: only a mark tells."""
_PLAIN_PROGRAMS: Final = frozenset(
    """
    ruff mypy pyright pylint flake8 isort tox nox hatch twine bazel buck2 cmake ctest ninja meson sbt lein
    deno vitest jest eslint tsc playwright cypress webpack vite golangci-lint gofmt goimports staticcheck
    rustfmt clippy-driver pre-commit ansible-playbook ansible packer flyctl vercel netlify wrangler heroku
    supabase phpunit rspec rubocop rebar3 cabal flutter xcodebuild protoc grpcurl hyperfine shellcheck shfmt
    hadolint trivy semgrep gradlew mvnw lint-imports pip-compile uvicorn gunicorn celery django-admin flask
    contextd skaffold minikube kind tilt psql pg_dump redis-cli mongosh jupyter dvc nextest
    """.split()
)
_AMBIGUOUS: Final = frozenset(
    "go export service node java env head less which find kill touch time top tail cat make test".split()
)
"""In code these begin other things than commands: `go func`, `export default`, `find x`."""
_ALONE: Final = frozenset("make pytest tox nox mypy yarn just rspec jest vitest".split())
_LOOKING: Final = frozenset(
    """
    cat ls cd head tail less more grep rg ag find fd sed awk wc tree pwd echo which file stat du df jq sort
    diff cut uniq xxd printenv env man type bat
    """.split()
)
_GIT_LOOKING: Final = frozenset("log status diff show blame branch grep ls-files reflog".split())
_AFTER: Final = frozenset(
    """
    pass passes passed fail fails failed now again ok green red gives gave shows showed says said runs works
    exits returns prints takes took still once twice first and then or but before after until to for with
    from in on at is are was were which that as so because when while if it this the a an twice too also
    locally everywhere against over across our your their my all every entire whole
    """.split()
)
"""What a sentence says after a command that it does not mark."""


@dataclass(frozen=True, slots=True)
class Named:
    """Something that a text names, with the line or sentence that does so."""

    text: str
    said: str
    strength: float


def commands(block: Block) -> Iterator[Named]:
    if block.form == "prose":
        yield from _in_prose(block.text)
        return
    typed = _typed(block.text)
    if typed is None and block.form == "shell" and is_plain_command(_bare(block.text)):
        typed = block.text
    if typed is not None:
        yield _named(typed, block.text)


def commands_of_value(key: str, value: str) -> Iterator[Named]:
    """Of a named value: `tests: make test` says what it is without a mark."""
    if len(value) > _LONGEST or "\n" in value or not _RUN_KEY.search(key):
        return
    for part in _parts(value):
        yield _named(part, f"{key}: {value}", LABELLED)


def is_plain_command(line: str) -> bool:
    """Of a line without a mark. Stricter than `is_command_line`, which trusts any unknown program."""
    words = _ASSIGNED.sub("", line).split()
    if not words:
        return False
    program = words[0]
    if len(words) == 1:
        return program in _ALONE or _is_runnable(program)
    if not (_is_program(program) or _is_runnable(program)):
        return False
    if program in _PLAIN_PROGRAMS or program.rpartition("/")[2] in _PLAIN_PROGRAMS:
        return not _AFTER.intersection(words[1:]) and not _SENTENCE_END.search(line)
    return is_command_line(line)


def _is_program(word: str) -> bool:
    name = word.rpartition("/")[2]
    return name in _PLAIN_PROGRAMS or (name.count("-") < 2 and "/" not in name and is_command_span(name))


def _is_runnable(word: str) -> bool:
    """`./run.sh`, and not `./src/main.c`."""
    return bool(_RUNNABLE.match(word)) and not (is_source_file(word) and not word.endswith((".sh", ".py")))


def _is_marked_command(code: str, before: str) -> bool:
    """Of what stands in backticks: to be run, rather than a name or a piece of code."""
    bare = _QUOTED.sub("''", _ASSIGNED.sub("", code.strip()))
    words = bare.split()
    if not words or _CODE.search(bare):
        return False
    program = words[0]
    if len(words) == 1:
        return _is_runnable(program) or (program in _ALONE and bool(_SAYS_RUN.search(before)))
    if program in _AMBIGUOUS:
        return is_command_line(code) or bool(_MAKE.match(bare))
    if is_source_file(program) and not program.startswith("./"):
        return False
    return program in _MARKED_PROGRAMS or _is_program(program) or _is_runnable(program)


def _in_prose(text: str) -> Iterator[Named]:
    if len(text) > _LONGEST_PROSE:
        return
    typed = _typed(text)
    if typed is not None:
        yield _named(typed, text)
        return
    for sentence in sentences(text):
        for span in _SPAN.finditer(sentence):
            if _is_marked_command(span.group(1), sentence[: span.start()]):
                yield _named(span.group(1), sentence)
        if label := _LABEL.search(sentence):
            for part in _parts(label.group(1)):
                yield _named(part, sentence, LABELLED)
        for verb in _RUN_VERB.finditer(sentence):
            if found := _unmarked(sentence[verb.end() : verb.end() + _LONGEST]):
                yield _named(found, sentence)


def _typed(line: str) -> str | None:
    """What stands behind a prompt, or in a tool's call as some clients print it."""
    if prompt := PROMPT.match(line):
        rest: str = prompt.group(1)
        first = rest.split(maxsplit=1)[0]
        return rest if (first[0].isalpha() and first.islower()) or first[0] in "./~_" else None
    if call := _TOOL_CALL.match(line):
        return str(call.group(1))
    quote = _QUOTE_PROMPT.match(line)
    return str(quote.group(1)) if quote and is_plain_command(_bare(quote.group(1))) else None


def _parts(value: str) -> Iterator[str]:
    """The commands of a value that is nothing else: one, or several with commas between."""
    whole = _bare(value.strip().strip("`"))
    if is_plain_command(whole) or _MAKE.match(whole):
        yield whole
        return
    parts = [_bare(part.strip().strip("`")) for part in _SEVERAL.split(whole)]
    commands = [part for part in parts if is_plain_command(part) or _MAKE.match(part)]
    if len(commands) == len(parts):
        yield from commands
    elif commands and commands[0] == parts[0]:
        yield commands[0]


def _unmarked(rest: str) -> str | None:
    """The longest beginning that is a command: it ends where the sentence goes on."""
    best: str | None = None
    taken: list[str] = []
    for word in rest.split()[:_MOST_WORDS]:
        if word.lower().strip(",.;:()") in _AFTER or "`" in word:
            break
        bare = _TRAILING.sub("", word)
        taken.append(bare)
        line = " ".join(taken)
        if is_plain_command(line) or (len(taken) > 1 and _MAKE.match(line)):
            best = line
        if bare != word:
            break
    return best if best and " " in best else None


def _bare(line: str) -> str:
    return _TRAILING.sub("", _COMMENT.sub("", line.strip()))


def _named(command: str, said: str, strength: float = RUN) -> Named:
    text = _bare(command)
    return Named(text, said, LOOKED if _only_looks(text) else strength)


def _only_looks(command: str) -> bool:
    words = _ASSIGNED.sub("", command).split()
    if not words:
        return True
    return words[0] in _LOOKING or (words[0] == "git" and len(words) > 1 and words[1] in _GIT_LOOKING)
