"""Arguments into inputs: each kind of mistake, named by its field, with what to give instead."""

from typing import Annotated, Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from contextd.domain.errors import (
    BadFormat,
    BadLength,
    BadPath,
    BadText,
    EmptyQuery,
    Invalid,
    MissingField,
    NotAChoice,
    OutOfRange,
    UnknownField,
    UnknownTool,
    WrongType,
    catalogue,
)
from contextd.edge.error_map import as_jsonrpc, body, codes
from contextd.plugins import load_extensions
from contextd.tools.checkpoints import CheckpointList, CheckpointSave, CheckpointSearch
from contextd.tools.declaration import Input
from contextd.tools.registry import Registry
from contextd.tools.validation import parse, parse_call

TOOLS = {tool.name: tool for tool in load_extensions().tools}
SAVE = {"summary": "s", "project_path": "/p"}


class Inner(BaseModel):
    name: str


class Everything(Input):
    """A field of each kind that a schema can have."""

    old_names: ClassVar = {"former": "renamed"}

    inner: Inner | None = None
    choice: Literal["a", "b"] = "a"
    only: Literal["x"] = "x"
    ratio: Annotated[float, Field(ge=0, le=1)] = 0.5
    count: int = 0
    flag: bool = False
    words: list[str] = Field(default_factory=list)
    anything: dict[str, Any] = Field(default_factory=dict)
    at_least: Annotated[str, Field(min_length=2)] = "ab"
    free: str = ""
    either: int | str = 1
    renamed: str = ""


def fault(model: type[Input], arguments: object) -> Invalid:
    with pytest.raises(Invalid) as raised:
        parse(model, arguments)
    return raised.value


@pytest.mark.parametrize(
    ("arguments", "kind", "field", "message"),
    [
        ({"project_path": "/p"}, MissingField, "summary", "summary is required: give 1 to 500 characters"),
        (SAVE | {"summary": ""}, BadLength, "summary", "summary is too short: give 1 to 500 characters"),
        (
            SAVE | {"summary": "  "},
            BadLength,
            "summary",
            "summary must not be blank: give 1 to 500 characters",
        ),
        (
            SAVE | {"summary": "x" * 501},
            BadLength,
            "summary",
            "summary is too long: give 1 to 500 characters",
        ),
        (
            SAVE | {"summary": 5},
            WrongType,
            "summary",
            "summary has the wrong type: give text of 1 to 500 characters",
        ),
        (
            SAVE | {"tags": ["x"] * 21},
            BadLength,
            "tags",
            "tags is too long: give a list of at most 20 items",
        ),
        (SAVE | {"tags": ["x", ""]}, BadLength, "tags", "tags[1] is too short: give 1 to"),
        (SAVE | {"tags": "x"}, WrongType, "tags", "tags has the wrong type"),
        (SAVE | {"context": {"k": "x" * 1001}}, BadLength, "context", "values of at most 1000 characters"),
        (
            SAVE | {"context": {"k": ["x" * 1001]}},
            BadLength,
            "context",
            "values of at most 1000 characters",
        ),
        (SAVE | {"context": {"": 1}}, BadLength, "context", "keys of 1 to 100 characters"),
        (
            SAVE | {"context": dict.fromkeys(map(str, range(51)), 1)},
            BadLength,
            "context",
            "at most 50 fields",
        ),
        (SAVE | {"state": {"k": "x" * 1_000_001}}, BadLength, "state", "characters as JSON"),
        (SAVE | {"project_path": "p"}, BadPath, "project_path", "must be an absolute path"),
        (SAVE | {"project_path": "/a/../b"}, BadPath, "project_path", "cannot contain a '..' component"),
        (SAVE | {"project_path": "/a//b"}, BadPath, "project_path", "must be a clean absolute path"),
        (SAVE | {"project_path": "//a"}, BadPath, "project_path", "must be a clean absolute path"),
        (SAVE | {"project_path": "/a/"}, BadPath, "project_path", "must be a clean absolute path"),
        (SAVE | {"summary": "a\x00"}, BadText, "summary", "summary contains a NUL character"),
        (SAVE | {"context": {"k": ["\ud800"]}}, BadText, "context", "context is not valid Unicode"),
        (
            SAVE | {"no_such": 1},
            UnknownField,
            "no_such",
            "no_such is not a field of this tool: known fields: summary",
        ),
        (SAVE | {"no such!": 1}, UnknownField, "a field", "a field is not a field of this tool"),
        (SAVE | {"n\x00": 1}, BadText, "arguments", "arguments contains a NUL character"),
        (SAVE | {"state": {"k": [float("inf")]}}, OutOfRange, "state", "a number that is not finite"),
        ([], WrongType, "arguments", "arguments must be an object"),
        (None, WrongType, "arguments", "arguments must be an object"),
    ],
)
def test_a_mistake_is_named_with_what_to_give(
    arguments: object, kind: type[Invalid], field: str, message: str
) -> None:
    found = fault(CheckpointSave, arguments)
    assert type(found) is kind
    assert found.details == {"field": field, "error": found.error}
    assert message in found.message
    assert found.message.startswith("[validation] ")


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"choice": "c"}, NotAChoice, "choice is not one of its values: give one of: a, b"),
        ({"only": "y"}, NotAChoice, "only is not one of its values: give x"),
        ({"ratio": 2.0}, OutOfRange, "ratio is out of range: give a number from 0 to 1"),
        ({"count": "1"}, WrongType, "count has the wrong type: give an integer"),
        ({"count": 1.5}, WrongType, "count has the wrong type: give an integer"),
        ({"flag": "yes"}, WrongType, "flag has the wrong type: give true or false"),
        ({"words": [1]}, WrongType, "words[0] has the wrong type: give text"),
        ({"anything": 1}, WrongType, "anything has the wrong type: give an object"),
        ({"at_least": "a"}, BadLength, "at_least is too short: give at least 2 characters"),
        ({"free": 1}, WrongType, "free has the wrong type: give text"),
        ({"either": []}, WrongType, "give an integer or text"),
        ({"inner": 1}, WrongType, "inner has the wrong type: give an object"),
        ({"inner": {}}, MissingField, "inner.name is required: give text"),
    ],
)
def test_every_kind_of_field_is_explained_in_words(
    arguments: dict[str, object], kind: type[Invalid], message: str
) -> None:
    found = fault(Everything, arguments)
    assert type(found) is kind
    assert message in found.message


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("checkpoint_save", SAVE | {"project_path": "p"}, "absolute path: give a clean absolute path"),
        ("checkpoint_search", {"query": " "}, "must not be empty: say what to search for"),
        ("checkpoint_list", {"offset": 10**9}, "give an integer from 0 to 1000000"),
        ("analytics_get", {"start_date": "1"}, "give 10 characters"),
        ("skill_update", {"id": "skill-1", "name": "a\nb"}, "one line without control characters: send"),
        ("status", {"x": 1}, "x is not a field of this tool: known fields: branch_id, token_budget"),
        (
            "memory_store",
            {"project_path": "/p", "title": "t", "content": "c", "anchors": [{"file": ""}]},
            "anchors[0].file is too short: give 1 to 4096 characters",
        ),
    ],
)
def test_the_remedy_fits_the_mistake(tool: str, arguments: dict[str, object], message: str) -> None:
    (declared,) = (each for each in load_extensions().tools if each.name == tool)
    assert message in fault(declared.input, arguments).message


def test_an_empty_query_has_a_code_of_its_own() -> None:
    for query in ("", "  \t"):
        found = fault(CheckpointSearch, {"query": query})
        assert type(found) is EmptyQuery
        assert codes(found).jsonrpc == -32004
        assert codes(found).http == 400


def test_nothing_is_clamped() -> None:
    for arguments in ({"limit": 0}, {"limit": 101}, {"offset": -1}, {"limit": True}, {"limit": 1e99}):
        fault(CheckpointList, arguments)


def test_a_former_name_is_taken_unless_the_new_one_is_there() -> None:
    assert parse(Everything, {"former": "x"}).renamed == "x"
    assert type(fault(Everything, {"former": "x", "renamed": "y"})) is UnknownField


def test_what_is_nested_without_end_is_refused() -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    assert type(fault(CheckpointSave, SAVE | {"state": {"k": deep}})) is BadFormat


def test_two_dots_in_a_name_are_no_way_up() -> None:
    assert parse(CheckpointSave, SAVE | {"project_path": "/a..b/..c/d.."}).project_path == "/a..b/..c/d.."


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5
    )
)
def test_any_value_in_any_field_is_taken_or_refused_and_never_repeated(value: Any) -> None:
    for name in CheckpointSave.model_fields:
        try:
            parse(CheckpointSave, SAVE | {name: value})
        except Invalid as found:
            assert found.details["field"] in (name, "arguments")
            if isinstance(value, str) and len(value) > 8:
                assert value not in found.message


def test_a_registry_knows_its_tools_by_name() -> None:
    tools = tuple(load_extensions().tools)
    registry = Registry(tools, ("checkpoints",))
    assert {tool.toolset for tool in registry.listed} == {"checkpoints"}
    assert registry["status"].name == "status"
    assert registry.get("nope") is None
    assert len(registry) == len(list(registry)) == len(tools)
    with pytest.raises(UnknownTool):
        registry["nope"]
    with pytest.raises(ValueError, match="two tools are named"):
        Registry((*tools, tools[0]))


def test_every_fault_has_an_id_of_its_own_and_codes_for_every_door() -> None:
    faults = list(catalogue())
    assert len({each.id for each in faults}) == len(faults)
    for each in faults:
        assert each.hint
        assert codes(each).http in range(400, 600)
        assert codes(each).grpc.isupper()
        assert codes(each).exit in (1, 2)


def test_the_error_of_the_seeds_example_is_ours() -> None:
    error = as_jsonrpc(fault(CheckpointSave, {"project_path": "/p"}))
    assert error["code"] == -32602
    assert error["data"]["category"] == "validation"
    assert error["data"]["details"] == {"field": "summary", "error": "summary is required"}
    assert body(fault(CheckpointSave, {}))["code"] == "VAL_001"


@pytest.mark.parametrize(
    ("terms", "id", "message"),
    [
        (
            {"token_budget": 199},
            "VAL_004",
            "token_budget is out of range: give an integer from 200 to 32768",
        ),
        ({"token_budget": 32_769}, "VAL_004", "token_budget is out of range"),
        ({"token_budget": "500"}, "VAL_002", "token_budget has the wrong type"),
        ({"token_budget": True}, "VAL_002", "token_budget has the wrong type"),
        ({"branch_id": ""}, "VAL_003", "branch_id is too short"),
        ({"branch_id": "x" * 129}, "VAL_003", "branch_id is too long"),
        ({"branch_id": 7}, "VAL_002", "branch_id has the wrong type"),
        ({"branch_id": "a\0b"}, "VAL_008", "branch_id contains a NUL character"),
    ],
)
@pytest.mark.parametrize("tool", ["status", "checkpoint_list"])
def test_what_every_call_may_say_is_held_to_its_bounds(
    tool: str, terms: dict[str, Any], id: str, message: str
) -> None:
    with pytest.raises(Invalid) as refused:
        parse_call(TOOLS[tool], terms)
    assert refused.value.id == id
    assert message in refused.value.message


def test_a_tool_keeps_a_field_that_every_call_has_beside_others() -> None:
    terms, ask = parse_call(TOOLS["branch_status"], {"branch_id": "br-1", "token_budget": 500})
    assert (terms.branch_id, terms.token_budget, ask.branch_id) == (None, 500, "br-1")


@pytest.mark.parametrize("arguments", [None, [], "x", 7])
def test_arguments_that_are_no_object_are_refused(arguments: object) -> None:
    with pytest.raises(WrongType, match="send a JSON object of named fields"):
        parse_call(TOOLS["status"], arguments)
