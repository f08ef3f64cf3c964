"""SQL that destroys, whether it stands alone or in the argument of a client."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from contextd.domain.command_risk.options import operands, option_values
from contextd.domain.command_risk.syntax import Call, Danger, Finding, Rule, Runs, Word

_NOISE: Final = re.compile(r"--[^\n]*|/\*(?!!).*?(?:\*/|\Z)|'(?:[^'\\]|''|\\.?)*(?:'|\Z)", re.DOTALL)
_VERB: Final = re.compile(
    r"\b(?:(?P<drop>drop)\s+(?!constraint\b|default\b|not\b|identity\b|expression\b)\w+"
    r"|(?P<truncate>truncate)\s+(?:table\s+)?[\w\"`\[]"
    r"|(?P<delete>delete)\s+(?:from|\w+\s+from)\b"
    r"|(?P<update>update)\s+(?:only\s+|low_priority\s+|ignore\s+)?[\w.\"`\[\]]+(?:\s+(?:as\s+)?\w+)?\s+set\b"
    r"|(?P<purge>reset\s+master|purge\s+binary\s+logs))",
    re.IGNORECASE,
)
_WHERE: Final = re.compile(
    r"\bwhere\b(?!\s*\(?\s*(?:true|1\s*=\s*1|1)\s*\)?\s*(?:;|\Z|returning|limit))", re.IGNORECASE
)
_BARE: Final = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(?:drop\s+\w|truncate\s+(?:table\b|\w+\s*(?:;|,|\Z|cascade|restart))"
    r"|delete\s+from\b|update\s+[\w.\"`]+\s+(?:\w+\s+)?set\b|alter\s+(?:table|database|schema)\b"
    r"|with\s+\w+|begin\b|start\s+transaction|explain\b|select\b|insert\s+into|set\s+\w+\s*=|use\s+\w+\s*;)",
    re.IGNORECASE | re.DOTALL,
)
_EXPLAINED: Final = re.compile(r"\s*explain\b(?!.*\banalyze\b)", re.IGNORECASE | re.DOTALL)
_SHELL_ESCAPE: Final = re.compile(r"(?:^|;)[ \t]*(?:\\!|\.shell|\.system|system)[ \t]+(.+)", re.MULTILINE)
_MONGO_PROMPT: Final = re.compile(r"\s*db\s*\.\s*\w")
_MONGO_LOSS: Final = re.compile(
    r"dropDatabase\s*\(|\.drop\s*\(|(?:deleteMany|remove)\s*\(\s*(?:\{\s*\})?\s*\)"
)
_EVERY_ROW: Final = "of every row: there is no WHERE that limits it"


def looks_like_sql(text: str) -> bool:
    return _BARE.match(text[:2_000]) is not None


def sql_dangers(text: str) -> Iterator[Danger]:
    for statement in _NOISE.sub(" ", text).split(";"):
        if _EXPLAINED.match(statement):
            continue
        matches = list(_VERB.finditer(statement))
        ends = [match.start() for match in matches[1:]] + [len(statement)]
        for match, end in zip(matches, ends, strict=False):
            if danger := _judged(match, statement, end):
                yield Danger(danger)


def _judged(match: re.Match[str], statement: str, end: int) -> str | None:
    if match["drop"] or match["purge"]:
        return "drops a table, a database or another object with its data"
    if match["truncate"]:
        return "empties a whole table" if not statement[: match.start()].strip() else None
    if _WHERE.search(_same_level(statement[match.end() : end])):
        return None
    return f"deletes the data {_EVERY_ROW}" if match["delete"] else f"overwrites a value {_EVERY_ROW}"


def _same_level(rest: str) -> str:
    """The rest of a statement without its parentheses; a WHERE within a sub-query limits nothing."""
    kept: list[str] = []
    depth = 0
    for character in rest:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if depth == 0 or (character == "(" and depth == 1):
            kept.append(" " if character in "()" else character)
    return "".join(kept)


# --- the clients ----------------------------------------------------------------------

_CLIENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "psql": ("-c", "--command"),
    "pgcli": ("-e",),
    "mysql": ("-e", "--execute"),
    "mariadb": ("-e", "--execute"),
    "mycli": ("-e", "--execute"),
    "sqlcmd": ("-Q", "-q"),
    "clickhouse-client": ("-q", "--query"),
    "cqlsh": ("-e", "--execute"),
    "cockroach": ("-e", "--execute"),
    "snowsql": ("-q", "--query"),
    "bq": (),
    "sqlite3": (),
    "duckdb": ("-c",),
    "wp": (),
}


def client(call: Call) -> Iterator[Finding]:
    texts = [word.text for word in option_values(call.args, *_CLIENTS[call.program])]
    if call.program in ("sqlite3", "duckdb", "bq", "wp"):
        texts += operands(call.texts, frozenset(("-cmd", "-separator", "-init")))[1:]
        texts += [word.text for word in option_values(call.args, "-cmd")]
    for text in [*texts, call.stdin or ""]:
        yield from sql_dangers(text)
        yield from (Runs(match[1]) for match in _SHELL_ESCAPE.finditer(text))


def mongo(call: Call) -> Iterator[Finding]:
    for text in [*(word.text for word in option_values(call.args, "--eval")), call.stdin or ""]:
        yield from _mongo_dangers(text)


def typed_in_mongo(text: str) -> Iterator[Danger]:
    """What is typed at the client's own prompt begins with the database."""
    if _MONGO_PROMPT.match(text):
        yield from _mongo_dangers(text)


def _mongo_dangers(text: str) -> Iterator[Danger]:
    if _MONGO_LOSS.search(text):
        yield Danger("drops a collection or a database, or deletes every document")


def typed_in_redis(call: Call) -> Iterator[Finding]:
    """`FLUSHALL` is typed at the client's own prompt as well."""
    yield from redis(Call("redis-cli", (Word(call.program), *call.args)))


def redis(call: Call) -> Iterator[Finding]:
    words = operands(call.texts, frozenset(("-h", "-p", "-a", "-n", "-u", "--user", "--pass")))
    lines = [" ".join(words), *(call.stdin or "").splitlines()]
    for line in lines:
        verb = line.strip().split(" ", 1)[0].lower()
        if verb in ("flushall", "flushdb", "shutdown") or "flushall" in line.lower():
            yield Danger("deletes every key, or stops the server")
        elif verb in ("del", "unlink") and (call.many or "*" in line):
            yield Danger("deletes every key that a list or a pattern names")


RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(_CLIENTS, client),
    **dict.fromkeys(("mongo", "mongosh"), mongo),
    **dict.fromkeys(("redis-cli", "valkey-cli", "keydb-cli"), redis),
    **dict.fromkeys(("flushall", "flushdb"), typed_in_redis),
}
