"""What the proxy writes and reads by hand, beside protobuf's own; flags beside their schemas."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextd.edge.grpc import contextd_v1_pb2 as wire
from contextd.plugins import load_extensions
from contextd.proxy.flags import arguments_of, with_project
from contextd.proxy.messages import Fault, execute_request, read_reply

TOOLS = {tool.name: tool for tool in load_extensions().tools}
EXAMPLES = [(name, dict(each.arguments)) for name, tool in TOOLS.items() for each in tool.examples]
TEXT = st.text(st.characters(codec="utf-8"), max_size=300)


@given(TEXT, st.binary(max_size=5_000))
def test_a_request_is_what_protobuf_reads(tool: str, arguments: bytes) -> None:
    read = wire.ExecuteRequest.FromString(execute_request(tool, arguments))
    assert (read.tool, read.arguments) == (tool, arguments)


@given(
    st.dictionaries(TEXT, TEXT | st.integers() | st.none()),
    st.lists(TEXT),
    st.integers(0, 2**40),
    st.booleans(),
    TEXT,
)
def test_an_answer_is_what_protobuf_wrote(
    data: dict[str, Any], refs: list[str], tokens: int, truncated: bool, warning: str
) -> None:
    written = wire.ExecuteReply(
        data=json.dumps(data).encode(),
        refs=refs,
        tokens_used=tokens,
        has_more=truncated,
        truncated=truncated,
        warning=warning,
    )
    told = json.loads(read_reply(written.SerializeToString()).envelope())
    assert told.pop("warning", "") == warning
    assert told == {
        "data": data,
        "refs": refs,
        "tokens_used": tokens,
        "has_more": truncated,
        "truncated": truncated,
    }


@given(TEXT, TEXT, TEXT)
def test_a_fault_is_raised_as_it_was_told(category: str, code: str, message: str) -> None:
    fault = wire.Fault(category=category, code=code, message=message, details=b'{"field": "x"}')
    with pytest.raises(Fault) as raised:
        read_reply(wire.ExecuteReply(fault=fault).SerializeToString())
    assert json.loads(raised.value.body) == {
        "category": category,
        "code": code,
        "message": message,
        "details": {"field": "x"},
    }


@pytest.mark.parametrize(("name", "arguments"), EXAMPLES)
def test_every_example_can_be_given_by_flags(name: str, arguments: dict[str, Any]) -> None:
    words = [word for field, value in arguments.items() for word in as_flag(field, value)]
    assert arguments_of(words, dict(TOOLS[name].input_schema)) == arguments


def as_flag(field: str, value: Any) -> list[str]:
    flag = f"--{field.replace('_', '-')}"
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return [word for item in value for word in (flag, item)]
    return [flag, value if isinstance(value, str) else json.dumps(value)]


@pytest.mark.parametrize("given_path", ["/srv/x", "~/x", "../x", "a/../b"])
def test_a_path_is_completed_and_never_reinterpreted(given_path: str) -> None:
    """What the daemon refuses must reach it as it was typed."""
    schema = {"properties": {"project_path": {"type": "string"}}, "required": ["project_path"]}
    assert with_project({"project_path": given_path}, schema, "/home/me")["project_path"] == given_path
    assert with_project({"project_path": "x"}, schema, "/home/me")["project_path"] == "/home/me/x"
