"""The fields that several tools share, each with its limits and its words."""

import json
import unicodedata
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from contextd.domain import limits
from contextd.domain.globs import compile_glob
from contextd.domain.records import Project


def _clean_path(path: str) -> str:
    """Refused for a `..` component, not for two dots in a name; resolved later, where it is used."""
    if not path.startswith("/"):
        raise PydanticCustomError("bad_path", "must be an absolute path")
    if ".." in path.split("/"):
        raise PydanticCustomError("bad_path", "cannot contain a '..' component")
    if str(PurePosixPath(path)) != path or path.startswith("//"):
        raise PydanticCustomError(
            "bad_path", "must be a clean absolute path, without '//', '/./' or a final '/'"
        )
    return path


def _small_values(context: dict[str, Any]) -> dict[str, Any]:
    for key, value in context.items():
        if not key or len(key) > limits.MAX_CONTEXT_KEY_LENGTH:
            raise PydanticCustomError(
                "bad_length", f"must have keys of 1 to {limits.MAX_CONTEXT_KEY_LENGTH} characters"
            )
        size = len(value) if isinstance(value, str) else len(json.dumps(value))
        if size > limits.MAX_CONTEXT_VALUE_LENGTH:
            raise PydanticCustomError(
                "bad_length", f"must have values of at most {limits.MAX_CONTEXT_VALUE_LENGTH} characters"
            )
    return context


def _small_state(state: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(state, ensure_ascii=False)) > limits.MAX_STATE_LENGTH:
        raise PydanticCustomError(
            "bad_length", f"must be at most {limits.MAX_STATE_LENGTH} characters as JSON"
        )
    return state


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return text


def _one_line(text: str) -> str:
    """Names are printed in lists: a line break or an escape sequence in one would forge a line."""
    if any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in text):
        raise PydanticCustomError("bad_text", "must be one line without control characters")
    return text


def _not_empty(query: str) -> str:
    if not query.strip():
        raise PydanticCustomError("empty_query", "must not be empty")
    return query


def _glob(pattern: str) -> str:
    try:
        compile_glob(pattern)
    except ValueError:
        raise PydanticCustomError(
            "bad_format", "must be a glob such as internal/auth/** or *.go, without '..'"
        ) from None
    return pattern


def project_id(project: Project) -> int:
    """A number, as the code tools have always answered; a double holds all of the key's digits."""
    return int(project.key, 16)


Object = Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]
NotBlank = AfterValidator(_not_blank)
OneLine = AfterValidator(_one_line)

Summary = Annotated[
    str, Field(min_length=1, max_length=limits.MAX_SUMMARY_LENGTH), AfterValidator(_not_blank)
]
Description = Annotated[str, Field(max_length=limits.MAX_DESCRIPTION_LENGTH)]
ErrorMessage = Annotated[
    str, Field(min_length=1, max_length=limits.MAX_ERROR_MESSAGE_LENGTH), AfterValidator(_not_blank)
]
StackTrace = Annotated[str, Field(max_length=limits.MAX_STACK_TRACE_LENGTH)]
ProjectPath = Annotated[
    str, Field(min_length=1, max_length=limits.MAX_PATH_LENGTH), AfterValidator(_clean_path)
]
Context = Annotated[
    dict[str, Any],
    Field(max_length=limits.MAX_CONTEXT_FIELDS),
    AfterValidator(_small_values),
    WithJsonSchema({"type": "object", "maxProperties": limits.MAX_CONTEXT_FIELDS}),
]
State = Annotated[dict[str, Any], AfterValidator(_small_state), WithJsonSchema({"type": "object"})]
Tag = Annotated[str, Field(min_length=1, max_length=limits.MAX_TAG_LENGTH)]
Tags = Annotated[list[Tag], Field(max_length=limits.MAX_TAGS)]
SearchText = Annotated[str, Field(max_length=limits.MAX_QUERY_LENGTH), AfterValidator(_not_empty)]
Glob = Annotated[str, Field(min_length=1, max_length=limits.MAX_GLOB_LENGTH), AfterValidator(_glob)]
Globs = Annotated[list[Glob], Field(max_length=limits.MAX_GLOBS)]
Id = Annotated[str, Field(min_length=1, max_length=limits.MAX_ID_LENGTH)]
Limit = Annotated[int, Field(ge=1, le=limits.MAX_RESULTS)]
Offset = Annotated[int, Field(ge=0, le=limits.MAX_OFFSET)]
Detail = Literal["refs", "preview", "full"]
"""How much of the long texts a search answers with: nothing, the beginning, or all."""
PREVIEW = 200
PATH_NAMES = {"project_path": "path"}
"""For the code tools: what a caller knows from the others names the same thing."""

Score = Annotated[float, PlainSerializer(lambda score: round(score, 4), return_type=float)]
"""Four digits are more than a rank can tell, and cost fewer tokens."""
