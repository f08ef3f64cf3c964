"""Every field of every tool, given what it must refuse: the cases are made from the registry."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

import httpx2
import pytest

from contextd.domain import limits
from contextd.domain.errors import Invalid
from contextd.plugins import load_extensions
from contextd.tools.declaration import AnyTool
from contextd.tools.fields import Context, Id, Limit, ProjectPath, SearchText, State, Summary
from contextd.tools.safe_files import FilePath
from contextd.tools.skills import Author, Category, Name
from contextd.tools.validation import parse
from running import JSON_AND_SSE, Daemon, Session, running_daemon

MARK = "zq7sentinel"
"""Stands in every value that is sent: an error must not repeat it."""

NUMBER = 918273645
SHORT = 10_000
"""Of what is longer, as many emoji would not fit into a request."""
TOOLS = {tool.name: tool for tool in load_extensions().tools}

FORMATTED = {"date": "2026-01-31", "sha256": "0f" * 32}
"""What a text with a `format` looks like. It takes no other, and so is not tried with any."""

HOSTILE_PATHS = {
    "relative": f"{MARK}/b",
    "dots": f"/{MARK}/../b",
    "dots at the start": f"/../{MARK}",
    "dots at the end": f"/{MARK}/..",
    "two slashes": f"/{MARK}//b",
    "two slashes at the start": f"//{MARK}",
    "a slash at the end": f"/{MARK}/",
    "a dot": f"/{MARK}/./b",
    "home": f"~/{MARK}",
    "a drive": f"C:\\{MARK}",
}
HARMLESS_PATHS = ["/a..b/c", "/a/..b", "/a/b..", "/a/...", "/ü/日本", "/a b/~c", "/"]
IN_ONE_LINE = (Name, Author, Category, FilePath)
"""What lists print: control characters and breaks are refused there."""
ODD_TEXTS = {
    "a change of direction": "left \u202eright\u202c",
    "emoji": "done \U0001f469\u200d\U0001f680 \u2764\ufe0f",
    "a combining mark": "e\u0301",
    "beyond the first plane": "\U0001d11e",
    "a byte order mark": "\ufeffx",
    "a noncharacter": "x\uffff",
    "control characters": "a\x01\x1b[31mb",
    "a line separator": "a\u2028b",
}


@dataclass(frozen=True)
class Case:
    """One call that must be refused. `field` is what the error must name, `ids` which errors fit."""

    tool: str
    kind: str
    arguments: Mapping[str, Any]
    field: str
    ids: frozenset[str]

    def __str__(self) -> str:
        return f"{self.tool}-{self.field}-{self.kind}"


class Bad:
    """A value that a field must refuse, with one of the errors named by `ids`."""

    def __init__(self, kind: str, value: Any, *ids: str) -> None:
        self.kind, self.value, self.ids = kind, value, frozenset(ids)


# --- the cases, from the registry -------------------------------------------------------


def hints(tool: AnyTool) -> dict[str, Any]:
    found = get_type_hints(tool.input, include_extras=True)
    return {name: found[name] for name in tool.input.model_fields}


def is_a(hint: Any, *kinds: Any) -> bool:
    return any(hint == kind or kind in get_args(hint) for kind in kinds)


def schemas(tool: AnyTool, name: str) -> list[dict[str, Any]]:
    """The forms that a field may have, without references."""
    schema = tool.input_schema["properties"][name]
    forms = schema.get("anyOf", [schema])
    definitions = tool.input_schema.get("$defs", {})
    return [definitions[form["$ref"].rsplit("/", 1)[1]] if "$ref" in form else form for form in forms]


def sample(tool: AnyTool, name: str) -> Any:
    """A value that the field accepts: one of the tool's own examples if it is there."""
    for example in tool.examples:
        if name in example.arguments:
            return example.arguments[name]
    form = schemas(tool, name)[0]
    if "format" in form:
        return FORMATTED[form["format"]]
    if is_a(hints(tool)[name], ProjectPath):
        return "/tmp/refused"
    if "enum" in form or "const" in form:
        return form.get("const") or form["enum"][0]
    if form["type"] == "array":
        return form["items"].get("enum", ["x"])[: form.get("minItems", 0)]
    return {"string": "x", "integer": 1, "number": 0.5, "boolean": True, "object": {}}[form["type"]]


def valid(tool: AnyTool) -> dict[str, Any]:
    """What is required and no more; a whole example where that is too little."""
    least = {name: sample(tool, name) for name in tool.input_schema.get("required", ())}
    try:
        parse(tool.input, least)
    except Invalid:
        return dict(tool.examples[0].arguments)
    return least


def refused(tool: AnyTool) -> Iterator[Case]:
    for name in tool.input.model_fields:
        if name in tool.input_schema.get("required", ()):
            without = {key: value for key, value in valid(tool).items() if key != name}
            yield Case(tool.name, "missing", without, name, frozenset({"VAL_001"}))
        for bad in bad_values(tool, name):
            yield Case(tool.name, bad.kind, {**valid(tool), name: bad.value}, name, bad.ids)
    unknown = {**valid(tool), "no_such_field": MARK}
    yield Case(tool.name, "unknown", unknown, "no_such_field", frozenset({"VAL_006"}))
    for name in (f"{MARK} is no name", f"{MARK}" * 10, f"__{MARK}\u202e"):
        yield Case(tool.name, "an odd name", {**valid(tool), name: 1}, "a field", frozenset({"VAL_006"}))
    for name in (f"{MARK}\x00", f"{MARK}\ud800"):
        yield Case(
            tool.name,
            "a name that is no text",
            {**valid(tool), name: 1},
            "arguments",
            frozenset({"VAL_008"}),
        )


def bad_values(tool: AnyTool, name: str) -> Iterator[Bad]:
    hint, forms = hints(tool)[name], schemas(tool, name)
    allowed = {form.get("type", "string") for form in forms}
    choice = any("enum" in form or "const" in form for form in forms)
    for type_name, value in of_every_type().items():
        if type_name not in allowed and not (type_name == "integer" and "number" in allowed):
            yield Bad(f"{type_name} instead", value, "VAL_005" if choice else "VAL_002")
    for form in forms:
        yield from bad_in_form(form)
    if is_a(hint, ProjectPath):
        yield from (Bad(f"a path with {kind}", path, "VAL_007") for kind, path in HOSTILE_PATHS.items())
        yield Bad("a path of 5000 characters", "/" + "a" * 4999, "VAL_003")
    if is_a(hint, SearchText):
        yield Bad("empty", "", "VAL_010")
        yield Bad("blank", " \n\t\u3000", "VAL_010")
    if is_a(hint, Summary):
        yield Bad("blank", " \n\t\u3000", "VAL_003")
    if is_a(hint, Context):
        yield Bad("a long value", {"key": MARK * 100}, "VAL_003")
        yield Bad("a long nested value", {"key": [MARK] * 100}, "VAL_003")
        yield Bad("a long key", {MARK * 10: "value"}, "VAL_003")
        yield Bad("an empty key", {"": MARK}, "VAL_003")
    if is_a(hint, State):
        yield Bad("a long whole", {"key": MARK * (limits.MAX_STATE_LENGTH // len(MARK) + 1)}, "VAL_003")


def of_every_type() -> dict[str, Any]:
    return {
        "null": None,
        "boolean": True,
        "integer": NUMBER,
        "number": NUMBER + 0.5,
        "string": MARK,
        "array": [MARK],
        "object": {MARK: MARK},
    }


def bad_in_form(form: Mapping[str, Any]) -> Iterator[Bad]:
    """What the JSON Schema of one form forbids, and what no text may hold."""
    match form.get("type"):
        case "string" if "enum" in form or "const" in form:
            yield Bad("not a choice", MARK, "VAL_005")
            yield Bad("empty choice", "", "VAL_005")
            yield Bad("a lone surrogate", f"{MARK}\ud800", "VAL_008")
        case "string":
            yield from bad_text(form)
        case "integer" | "number":
            yield from bad_number(form)
        case "array":
            yield from bad_list(form)
        case "object":
            if "maxProperties" in form:
                texts = form.get("additionalProperties", {}).get("type") == "string"
                many = {f"{MARK}{n}": str(n) if texts else n for n in range(form["maxProperties"] + 1)}
                yield Bad("too many properties", many, "VAL_003")
            yield Bad("a NUL in a key", {f"{MARK}\x00": 1}, "VAL_008")
            yield Bad("a lone surrogate inside", {"key": [f"{MARK}\udfff"]}, "VAL_008")
            yield Bad("no number inside", {"key": [float("nan")]}, "VAL_004")
            yield Bad("an endless number inside", {"key": {"deeper": float("-inf")}}, "VAL_004")
            yield Bad("too deep", nested(100), "VAL_009")


def bad_text(form: Mapping[str, Any]) -> Iterator[Bad]:
    yield Bad("a lone surrogate", f"{MARK}\ud800", "VAL_008")
    yield Bad("a lone low surrogate", f"\udc00{MARK}", "VAL_008")
    yield Bad("a NUL", f"{MARK}\x00b", "VAL_008")
    if form.get("minLength"):
        yield Bad("empty", "", "VAL_003")
    if "maxLength" in form:
        yield Bad(
            "too long", (MARK * (form["maxLength"] // len(MARK) + 1))[: form["maxLength"] + 1], "VAL_003"
        )
    if form.get("maxLength", SHORT + 1) <= SHORT:
        yield Bad("too long in emoji", "\U0001f680" * (form["maxLength"] + 1), "VAL_003")


def bad_number(form: Mapping[str, Any]) -> Iterator[Bad]:
    if "minimum" in form:
        yield Bad("too small", form["minimum"] - NUMBER, "VAL_004")
        yield Bad("one too small", form["minimum"] - 1, "VAL_004")
    if "maximum" in form:
        yield Bad("too large", form["maximum"] + NUMBER, "VAL_004")
        yield Bad("one too large", form["maximum"] + 1, "VAL_004")
        yield Bad("beyond 64 bits", 2**80, "VAL_004")
    for kind, value in (("nan", float("nan")), ("infinite", float("inf"))):
        yield Bad(kind, value, "VAL_002", "VAL_004")


def bad_list(form: Mapping[str, Any]) -> Iterator[Bad]:
    items = form.get("items", {})
    good = items.get("enum", ["x"])[0]
    if "maxItems" in form:
        yield Bad("too many items", [good] * (form["maxItems"] + 1), "VAL_003")
    if form.get("minItems"):
        yield Bad("no items", [], "VAL_003")
    if items.get("type") == "string":
        for kind, value in {**of_every_type(), "list": [], "empty object": {}}.items():
            if kind != "string":
                yield Bad(f"{kind} as an item", [value], "VAL_002", "VAL_005")
        yield from (Bad(f"{bad.kind} as an item", [bad.value], *bad.ids) for bad in bad_in_form(items))


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {MARK: MARK}
    for _ in range(depth):
        value = {"deeper": value}
    return value


CASES = [case for tool in TOOLS.values() for case in refused(tool)]
SAMPLE = list({(case.tool, case.kind): case for case in CASES}.values())
"""For the slower doors: each kind once a tool."""


# --- the doors ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """After all that was refused, nothing may have been written."""
    with running_daemon(tmp_path_factory.mktemp("data"), CONTEXTD_RATE_LIMIT="off") as started:
        started.tool("checkpoint_save", summary="the only one", project_path="/tmp/kept").raise_for_status()
        before = kept(started)
        yield started
        assert kept(started) == before


@pytest.fixture(scope="module")
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=30) as opened:
        yield opened


@pytest.fixture(scope="module")
def older(daemon: Daemon) -> Session:
    return daemon.session("2025-06-18")


@pytest.fixture(scope="module")
def newer(daemon: Daemon) -> Session:
    return daemon.session("2025-11-25")


def kept(daemon: Daemon) -> tuple[Any, ...]:
    listed = daemon.tool("checkpoint_list", limit=100).json()["data"]
    collections = daemon.tool("collection_list").json()["data"]
    counts = [(each["project_path"], each["counts"]) for each in collections["collections"]]
    return listed["total"], [each["id"] for each in listed["checkpoints"]], counts


def by_automation(client: httpx2.Client, daemon: Daemon, tool: str, arguments: object) -> httpx2.Response:
    return client.post(f"{daemon.url}/api/v1/tools/{tool}", content=json.dumps(arguments))


def by_mcp(client: httpx2.Client, session: Session, tool: str, arguments: object) -> httpx2.Response:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    headers = {**JSON_AND_SSE, "Mcp-Session-Id": session.id, "Mcp-Protocol-Version": session.version}
    return client.post(session.daemon.mcp, content=json.dumps(message), headers=headers)


def check_body(body: Mapping[str, Any], case: Case) -> None:
    assert body["category"] == "validation"
    assert body["code"] in case.ids
    assert body["details"].keys() >= {"field", "error"}
    assert body["details"]["field"] == case.field
    assert body["message"].startswith(f"[validation] {body['details']['error']}: ")


def check_secrecy(text: str) -> None:
    assert MARK not in text
    assert str(NUMBER) not in text
    assert "pydantic" not in text.lower()
    assert "Traceback" not in text


def code_of(case: Case) -> int:
    return -32004 if case.ids == {"VAL_010"} else -32602


def goes_through_json(case: Case) -> bool:
    """MCP's own parser takes neither lone surrogates nor, by the standard, what is no number."""
    try:
        json.dumps(case.arguments, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


# --- refused --------------------------------------------------------------------------------


def test_there_are_cases_for_every_field_of_every_tool() -> None:
    fields = {(tool.name, name) for tool in TOOLS.values() for name in tool.input.model_fields}
    assert fields <= {(case.tool, case.field) for case in CASES}
    assert {case.tool for case in CASES} == TOOLS.keys()
    assert len(CASES) > 250


def test_what_the_cases_are_made_from_is_itself_accepted() -> None:
    for tool in TOOLS.values():
        parse(tool.input, valid(tool))
        for name in tool.input.model_fields:
            parse(tool.input, {**valid(tool), name: sample(tool, name)})


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_automation_api_refuses_with_the_fields_name_and_not_its_value(
    daemon: Daemon, client: httpx2.Client, case: Case
) -> None:
    answer = by_automation(client, daemon, case.tool, case.arguments)
    assert answer.status_code == 400, answer.text[:500]
    check_body(answer.json(), case)
    check_secrecy(answer.text)


@pytest.mark.parametrize("case", [case for case in SAMPLE if goes_through_json(case)], ids=str)
def test_an_older_mcp_client_is_told_by_a_jsonrpc_error(
    client: httpx2.Client, older: Session, case: Case
) -> None:
    answer = by_mcp(client, older, case.tool, case.arguments)
    message = answer.json()
    assert message.keys() == {"jsonrpc", "id", "error"}
    assert message["error"]["code"] == code_of(case)
    assert message["error"]["message"] == message["error"]["data"]["message"]
    check_body(message["error"]["data"], case)
    check_secrecy(answer.text)


@pytest.mark.parametrize("case", [case for case in SAMPLE if goes_through_json(case)], ids=str)
def test_a_newer_mcp_client_is_told_by_a_result_with_the_same_body(
    daemon: Daemon, client: httpx2.Client, newer: Session, case: Case
) -> None:
    answer = by_mcp(client, newer, case.tool, case.arguments)
    result = answer.json()["result"]
    assert result["isError"] is True
    check_body(result["structuredContent"], case)
    assert result["structuredContent"] == by_automation(client, daemon, case.tool, case.arguments).json()
    assert result["content"] == [{"type": "text", "text": result["structuredContent"]["message"]}]
    check_secrecy(answer.text)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize(
    "case",
    [case for case in SAMPLE if not goes_through_json(case) and case.tool == "checkpoint_save"],
    ids=str,
)
def test_what_is_not_json_by_the_standard_is_an_error_of_the_protocol_or_the_field(
    client: httpx2.Client, older: Session, newer: Session, version: str, case: Case
) -> None:
    answer = by_mcp(client, older if version == older.version else newer, case.tool, case.arguments)
    assert answer.status_code in (200, 400)
    message = answer.json()
    if "error" in message and message["error"]["code"] == -32700:
        assert answer.status_code == 400
    else:
        check_body(
            message["error"]["data"] if "error" in message else message["result"]["structuredContent"], case
        )
    check_secrecy(answer.text)


@pytest.mark.parametrize("arguments", [[], [MARK], MARK, NUMBER, True, None], ids=repr)
def test_arguments_that_are_no_object_are_refused_at_every_door(
    daemon: Daemon, client: httpx2.Client, older: Session, newer: Session, arguments: object
) -> None:
    answer = by_automation(client, daemon, "checkpoint_save", arguments)
    assert answer.status_code == 400
    assert answer.json()["details"]["field"] == "arguments"
    check_secrecy(answer.text)
    for session in (older, newer):
        message = by_mcp(client, session, "checkpoint_save", arguments)
        check_secrecy(message.text)
        refusal = message.json()
        assert refusal.get("error", {}).get("code") == -32602 or refusal["result"]["isError"]


@pytest.mark.parametrize(
    "body", [b"{", b'{"summary": }', b"\xff\xfe", b"[" * 100_000, b'{"a": ' * 50_000, b"nul", b"9" * 10_000]
)
def test_a_body_that_is_not_json_is_refused_and_not_repeated(
    daemon: Daemon, client: httpx2.Client, body: bytes
) -> None:
    answer = client.post(f"{daemon.url}/api/v1/tools/checkpoint_save", content=body)
    assert answer.status_code == 400
    assert answer.json()["category"] == "validation"
    assert answer.json()["details"]["field"] in ("body", "arguments")


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "1.0", "id": 1, "method": MARK},
        {"jsonrpc": "2.0", "id": 1, "method": [MARK]},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": MARK},
        {"jsonrpc": "2.0", "id": 1},
        [{"jsonrpc": "2.0", "id": 1, "method": MARK}],
        MARK,
        NUMBER,
        None,
    ],
    ids=repr,
)
def test_what_is_no_message_is_refused_in_our_words(
    client: httpx2.Client, older: Session, message: object
) -> None:
    headers = {**JSON_AND_SSE, "Mcp-Session-Id": older.id, "Mcp-Protocol-Version": older.version}
    answer = client.post(older.daemon.mcp, content=json.dumps(message), headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] in (-32600, -32602)
    check_secrecy(answer.text)


@pytest.mark.parametrize("header", ["Origin", "Host"])
@pytest.mark.parametrize("value", ["http://[", "[", "[::1", "http://@", "a b", "\xff"])
def test_a_name_that_is_none_is_refused_and_not_a_crash(
    daemon: Daemon, client: httpx2.Client, header: str, value: str
) -> None:
    sent = [(header.encode(), value.encode("latin-1"))]
    answer = client.get(f"{daemon.url}/health", headers=sent)
    assert answer.status_code in (400, 403, 421)


def test_an_id_is_no_way_to_another_file(daemon: Daemon, client: httpx2.Client) -> None:
    """An id names its drawer, and a drawer is a file: `..` in it must lead nowhere."""
    outside = daemon.data_dir / "outside.db"
    outside.touch()
    for key in ("../outside", "../../data/outside", "..", ".", "", "/", f"{daemon.data_dir}/outside"):
        answer = by_automation(client, daemon, "checkpoint_restore", {"id": f"cp-{key}-x"})
        assert answer.status_code in (400, 404)
    assert outside.read_bytes() == b""


@pytest.mark.parametrize(
    "uri",
    [
        "\ud800",
        "contextd://checkpoints/cp-\ud800-x",
        f"contextd://checkpoints/cp-{'a' * 5000}-x",
        "",
        "\x00",
    ],
)
def test_a_resource_that_cannot_be_is_an_error_and_not_a_crash(
    daemon: Daemon, client: httpx2.Client, uri: str
) -> None:
    answer = client.post(f"{daemon.url}/mcp/resources/read", content=json.dumps({"uri": uri}))
    assert answer.status_code in (400, 404)


@pytest.mark.parametrize("id", [float("nan"), "\ud800", {"a": 1}, [1], True, 1.5])
def test_an_id_that_is_none_is_not_repeated_on_the_older_paths(
    daemon: Daemon, client: httpx2.Client, id: object
) -> None:
    sent = {"jsonrpc": "2.0", "id": id, "params": {}}
    answer = client.post(f"{daemon.url}/mcp/checkpoint/save", content=json.dumps(sent))
    assert answer.status_code == 400
    assert answer.json()["id"] is None
    assert answer.json()["error"]["code"] in (-32600, -32602)


@pytest.mark.parametrize("id", [0, 7, -1, "a", "", None])
def test_an_id_that_is_one_comes_back_on_the_older_paths(
    daemon: Daemon, client: httpx2.Client, id: object
) -> None:
    sent = {"jsonrpc": "2.0", "id": id, "params": {}}
    answer = client.post(f"{daemon.url}/mcp/checkpoint/save", content=json.dumps(sent)).json()
    assert answer["id"] == id
    assert answer["error"]["data"]["details"]["field"] == "summary"


# --- accepted -------------------------------------------------------------------------------


def accepted(is_meant: Callable[[Any, Mapping[str, Any]], bool]) -> list[tuple[AnyTool, str]]:
    return [
        (tool, name)
        for tool in TOOLS.values()
        for name, hint in hints(tool).items()
        if is_meant(hint, schemas(tool, name)[0])
    ]


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
def test_odd_text_is_accepted_wherever_text_is(text: str) -> None:
    def is_text(hint: Any, form: Mapping[str, Any]) -> bool:
        is_free = form.get("type") == "string" and not form.keys() & {"enum", "const", "format"}
        return is_free and not is_a(hint, ProjectPath) and not (is_broken and is_a(hint, *IN_ONE_LINE))

    is_broken = any(char in text for char in "\x1b\u2028")
    for tool, name in accepted(is_text):
        assert getattr(parse(tool.input, {**valid(tool), name: text}), name) == text


@pytest.mark.parametrize("path", HARMLESS_PATHS)
def test_a_path_with_dots_in_a_name_is_accepted(path: str) -> None:
    for tool, name in accepted(lambda hint, _: is_a(hint, ProjectPath)):
        assert getattr(parse(tool.input, {**valid(tool), name: path}), name) == path


def test_the_longest_and_the_largest_are_accepted() -> None:
    for tool in TOOLS.values():
        for name, hint in hints(tool).items():
            for form in schemas(tool, name):
                if "maxLength" in form and "format" not in form and not is_a(hint, ProjectPath, Id):
                    parse(tool.input, {**valid(tool), name: "\U0001f680" * form["maxLength"]})
                if is_a(hint, Limit):
                    parse(tool.input, {**valid(tool), name: form["maximum"]})
                    parse(tool.input, {**valid(tool), name: form["minimum"]})


@pytest.fixture(scope="module")
def writable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running_daemon(tmp_path_factory.mktemp("data"), CONTEXTD_RATE_LIMIT="off") as started:
        yield started


def test_odd_text_comes_back_as_it_was(writable: Daemon) -> None:
    for text in ODD_TEXTS.values():
        fields = {
            "summary": text,
            "description": text,
            "content": text,
            "context": {text: text},
            "state": {text: [text]},
            "tags": [text],
        }
        saved = writable.tool("checkpoint_save", project_path="/tmp/odd", **fields)
        assert saved.status_code == 200, saved.text
        found = writable.tool("checkpoint_restore", id=saved.json()["data"]["id"], level="full")
        assert {name: found.json()["data"][name] for name in fields} == fields
        assert writable.tool("checkpoint_search", query=text, project_path="/tmp/odd").status_code == 200


UNLIKELY_PATHS = {
    "dots in a name": "/a..b/c",
    "a name too long for a disk": "/" + "n" * 300,
    "a path of many names": "/" + "/".join(["n" * 200] * 20),
    "a newline": "/a\nb",
    "letters": "/ü/日本",
    "inside a device": "/dev/null/x",
    "inside a file": "/etc/passwd/x",
}


@pytest.mark.parametrize("path", UNLIKELY_PATHS.values(), ids=UNLIKELY_PATHS.keys())
def test_a_project_need_not_be_a_possible_file(writable: Daemon, path: str) -> None:
    saved = writable.tool("checkpoint_save", summary="kept anyway", project_path=path)
    assert saved.status_code == 200, saved.text
    listed = writable.tool("checkpoint_list", project_path=path, token_budget=8_000).json()["data"]
    assert [each["id"] for each in listed["checkpoints"]] == [saved.json()["data"]["id"]]
    assert listed["checkpoints"][0]["project_path"] == path
