"""What a tool is: one function. Its types become the schema and its docstring the description."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
    get_type_hints,
)

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from contextd.domain.callers import Caller
from contextd.domain.limits import (
    DEFAULT_TIMEOUT_S,
    DEFAULT_TOKENS,
    MAX_ID_LENGTH,
    MAX_TOKENS,
    MIN_TOKENS,
    REFERENCES_TOKENS,
)
from contextd.domain.records import Json
from contextd.tools.schemas import lean_input, schema_of, short_input, short_output

Toolset = Literal[
    "checkpoints", "errors", "skills", "memories", "code", "safe", "folding", "system", "plugins"
]


class Input(BaseModel):
    """What a caller sends: strict types, no unknown fields, nothing clamped."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)

    old_names: ClassVar[Mapping[str, str]] = {}
    """Names from earlier clients, and what they are called now."""


class Output(BaseModel):
    """What a tool answers: exactly the declared fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    sparse: ClassVar[bool] = False
    """Whether fields that were not set are left out of the answer."""

    def only(self, *fields: str) -> Self:
        """With these fields set and no others, for a sparse answer."""
        return type(self)(**{name: getattr(self, name) for name in fields})

    def without(self, *fields: str) -> str:
        """The others, as an answer would have told them."""
        return self.model_dump_json(exclude=set(fields))


def optional(description: str | None = None) -> Any:
    """For a field that a sparse answer may leave out. None only stands in for it, and is never told."""
    return Field(default_factory=lambda: None, description=description)


class Terms(Input):
    """What a caller may say beside every tool's own fields. A tool that has such a field keeps it."""

    branch_id: Annotated[
        str | None, Field(min_length=1, max_length=MAX_ID_LENGTH), WithJsonSchema({"type": "string"})
    ] = None
    """The branch whose budget the answer is charged to."""
    token_budget: Annotated[
        int | None,
        Field(ge=MIN_TOKENS, le=MAX_TOKENS),
        WithJsonSchema({"type": "integer", "minimum": MIN_TOKENS, "maximum": MAX_TOKENS}),
    ] = None
    """The most tokens of the answer; what does not fit is held under a ref."""


class Envelope(BaseModel):
    """What stands beside every answer's own fields. Short: every listed tool repeats it."""

    tokens_used: int = 0
    """Of this answer as text, these fields included (o200k)."""
    truncated: bool = False
    """Whether parts were left out."""
    has_more: bool = False
    """Whether refs hold more."""
    refs: list[str] = Field(default_factory=list)
    """For ref_get: what was left out."""
    warning: str = ""
    """That a branch's budget is nearly used up."""


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
    keeps_time: bool
    read_only: bool
    destructive: bool
    idempotent: bool
    examples: tuple[Example, ...]
    budget: int | Callable[[I], int]
    not_for: str
    asked: str
    lean: tuple[str, ...]
    lean_only: bool

    def tokens(self, ask: I) -> int:
        """What this answer may cost unless its caller says otherwise."""
        if callable(self.budget):
            return self.budget(ask)
        by_reference = getattr(ask, "detail", None) == "refs"
        return min(self.budget, REFERENCES_TOKENS) if by_reference else self.budget

    @cached_property
    def terms(self) -> frozenset[str]:
        """The fields of every call that this tool has not taken for its own."""
        return frozenset(Terms.model_fields) - frozenset(self.input.model_fields)

    @cached_property
    def input_schema(self) -> Mapping[str, Any]:
        schema = schema_of(self.input, "validation")
        terms = schema_of(Terms, "validation")["properties"]
        own = schema.get("properties", {})
        schema["properties"] = own | {name: _short(terms[name]) for name in terms if name in self.terms}
        return schema

    @cached_property
    def output_schema(self) -> Mapping[str, Any]:
        output = schema_of(self.output, "serialization")
        envelope = schema_of(Envelope, "serialization")
        beside = {name: _short(field) for name, field in envelope["properties"].items()}
        output["properties"] = {**output.get("properties", {}), **beside}
        output.pop("additionalProperties", None)
        return output

    @cached_property
    def compact_schema(self) -> dict[str, Any]:
        """All of its own fields, by type and meaning: for a caller that did not see the tool listed."""
        return lean_input(self.input_schema, self.input.model_fields)

    @cached_property
    def listing(self) -> dict[str, Any]:
        """The tool as `tools/list` has it."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": short_input(self.input_schema),
            "outputSchema": short_output(self.output_schema),
            "annotations": self._hints(),
        }

    @cached_property
    def lean_listing(self) -> dict[str, Any]:
        """The tool as the lean profile has it: what it takes to choose and to call it."""
        schema = lean_input(self.input_schema, self.lean) if self.lean else self.compact_schema
        listing = {"name": self.name, "description": self.description, "inputSchema": schema}
        return {**listing, "annotations": {"readOnlyHint": True}} if self.read_only else listing

    def _hints(self) -> dict[str, bool]:
        """Those that say something: what only reads destroys nothing and can be repeated."""
        if self.read_only:
            return {"readOnlyHint": True, "openWorldHint": False}
        hints = {"destructiveHint": self.destructive, "openWorldHint": False}
        return {**hints, "idempotentHint": True} if self.idempotent else hints


AnyTool = Tool[Any, Any, Any]


def tool(
    *,
    toolset: Toolset,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    keeps_time: bool = False,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
    examples: tuple[Example, ...] = (),
    budget: int | Callable[[Any], int] = DEFAULT_TOKENS,
    not_for: str = "",
    asked: str = "",
    lean: tuple[str, ...] = (),
    lean_only: bool = False,
) -> Callable[[Callable[[S, I, Caller], Awaitable[O]]], Tool[S, I, O]]:
    """Declare the function below as a tool: `async def name(service, ask, caller) -> Answer`.

    `keeps_time` is for one that ends in time by itself, because its end is an answer and no error.
    `budget` is the most tokens of an answer; `not_for` says what to call instead, and when, as
    `what: tool; what: tool`; `asked` has other words for what it does, by which find_tools finds it. `lean`
    makes it one of the few of the lean profile, with these fields; `lean_only` lists it nowhere else.
    """

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
            keeps_time=keeps_time,
            read_only=read_only,
            destructive=destructive,
            idempotent=idempotent or read_only,
            examples=examples,
            budget=budget,
            not_for=not_for,
            asked=asked,
            lean=lean,
            lean_only=lean_only,
        )

    return declare


def _short(field: Mapping[str, Any]) -> dict[str, Any]:
    """Without a default that says nothing: this stands in every tool's schema."""
    return {key: value for key, value in field.items() if key != "default"}
