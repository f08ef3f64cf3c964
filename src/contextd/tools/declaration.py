"""What a tool is: one function. Its types become the schema and its docstring the description."""

import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field

from contextd.domain.callers import Caller
from contextd.domain.errors import Misconfigured, UnknownTool
from contextd.domain.limits import DEFAULT_TIMEOUT_S
from contextd.domain.records import Json

Toolset = Literal["checkpoints", "errors", "skills", "memories", "code", "safe", "folding", "system"]


class Input(BaseModel):
    """What a caller sends: strict types, no unknown fields, nothing clamped."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)

    old_names: ClassVar[Mapping[str, str]] = {}
    """Names from earlier clients, and what they are called now."""


class Output(BaseModel):
    """What a tool answers: exactly the declared fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Envelope(BaseModel):
    """What stands beside every answer's own fields."""

    tokens_used: int = Field(default=0, description="tokens of this answer (o200k)")
    truncated: bool = Field(default=False, description="whether parts were left out")
    has_more: bool = Field(default=False, description="whether refs hold more")
    refs: list[str] = Field(default_factory=list, description="handles of what was left out")


S = TypeVar("S")
I = TypeVar("I", bound=Input)  # noqa: E741 - input
O = TypeVar("O", bound=Output)  # noqa: E741 - output


@dataclass(frozen=True, slots=True)
class Example:
    """A call that works as written; tests run each one."""

    title: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True)
class Tool(Generic[S, I, O]):
    name: str
    description: str
    toolset: Toolset
    service: type[S]
    input: type[I]
    output: type[O]
    run: Callable[[S, I, Caller], Awaitable[O]]
    timeout_s: float
    read_only: bool
    destructive: bool
    idempotent: bool
    examples: tuple[Example, ...]

    @cached_property
    def input_schema(self) -> Mapping[str, Any]:
        return _schema(self.input, "validation")

    @cached_property
    def output_schema(self) -> Mapping[str, Any]:
        output = _schema(self.output, "serialization")
        envelope = _schema(Envelope, "serialization")
        output["properties"] = {**output.get("properties", {}), **envelope["properties"]}
        output.pop("additionalProperties", None)
        return output

    @cached_property
    def listing(self) -> dict[str, Any]:
        """The tool as `tools/list` has it."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": dict(self.input_schema),
            "outputSchema": _or_a_fault(self.output_schema),
            "annotations": {
                "readOnlyHint": self.read_only,
                "destructiveHint": self.destructive,
                "idempotentHint": self.idempotent,
                "openWorldHint": False,
            },
        }


AnyTool = Tool[Any, Any, Any]


def tool(
    *,
    toolset: Toolset,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
    examples: tuple[Example, ...] = (),
) -> Callable[[Callable[[S, I, Caller], Awaitable[O]]], Tool[S, I, O]]:
    """Declare the function below as a tool: `async def name(service, ask, caller) -> Answer`."""

    def declare(run: Callable[[S, I, Caller], Awaitable[O]]) -> Tool[S, I, O]:
        hints = get_type_hints(run)
        service, ask, _ = inspect.signature(run).parameters
        return Tool(
            name=run.__name__.rstrip("_"),
            description=inspect.cleandoc(run.__doc__ or ""),
            toolset=toolset,
            service=hints[service],
            input=hints[ask],
            output=hints["return"],
            run=run,
            timeout_s=timeout_s,
            read_only=read_only,
            destructive=destructive,
            idempotent=idempotent or read_only,
            examples=examples,
        )

    return declare


class Registry:
    """Every tool by name. `listed` is what is advertised; the others answer all the same."""

    def __init__(self, tools: tuple[AnyTool, ...], toolsets: tuple[str, ...] = ("all",)) -> None:
        self._tools: dict[str, AnyTool] = {}
        for declared in tools:
            if declared.name in self._tools:
                raise ValueError(f"two tools are named {declared.name}")
            self._tools[declared.name] = declared
        _check(toolsets, tools)
        self.listed = tuple(t for t in tools if "all" in toolsets or t.toolset in toolsets)

    def __getitem__(self, name: str) -> AnyTool:
        try:
            return self._tools[name]
        except KeyError:
            raise UnknownTool from None

    def get(self, name: str) -> AnyTool | None:
        return self._tools.get(name)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def listing(self) -> str:
        """What a client reads to know the tools, as JSON: the price of being there."""
        return json.dumps([tool.listing for tool in self.listed], separators=(",", ":"))


def _check(toolsets: tuple[str, ...], tools: tuple[AnyTool, ...]) -> None:
    """A name that is no toolset would list nothing, and nobody would know why."""
    known = dict.fromkeys(("all", *get_args(Toolset), *(each.toolset for each in tools)))
    unknown = [name for name in toolsets if name not in known]
    if unknown:
        raise Misconfigured(
            f"there is no toolset named {', '.join(unknown)}",
            f"set CONTEXTD_TOOLSETS, or --toolsets, to any of: {', '.join(known)}",
        )


def _or_a_fault(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Clients of the official TypeScript SDK hold failed calls, too, against the schema. If it knew answers
    only, they would complain about the schema and never show the fault."""
    rest = {name: part for name, part in schema.items() if name != "required"}
    answer, fault = schema.get("required", []), ["category", "code", "message"]
    return {**rest, "anyOf": [{"required": answer}, {"required": fault}]}


def _schema(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    """The model's JSON Schema without pydantic's titles, which only repeat the names."""
    return _untitled(model.model_json_schema(mode=mode))


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    bare: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in ("properties", "$defs"):
            bare[key] = {name: _untitled(part) for name, part in value.items()}
        elif isinstance(value, dict) and key != "default":
            bare[key] = _untitled(value)
        elif isinstance(value, list) and key in ("anyOf", "oneOf", "allOf"):
            bare[key] = [_untitled(part) for part in value]
        else:
            bare[key] = value
    bare.pop("description", None) if bare.get("type") == "object" and "properties" in bare else None
    return bare
