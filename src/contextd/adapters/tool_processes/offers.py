"""What a tool process says of its tools, looked at before it is believed."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from contextd.domain.errors import ToolProcessMisspoke
from contextd.domain.limits import DEFAULT_TIMEOUT_S
from contextd.domain.tool_processes import OfferedTool

if TYPE_CHECKING:
    from contextd.plugin_kit.wire.plugin_v1_pb2 import Tool

_MOST_TOOLS: Final = 32
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LONGEST: Final = 500
_LARGEST_SCHEMA: Final = 16_384
_LONGEST_TIMEOUT_S: Final = 600.0


def offered(plugin: str, tools: "Sequence[Tool]") -> tuple[OfferedTool, ...]:
    """Raises ToolProcessMisspoke."""
    if not 0 < len(tools) <= _MOST_TOOLS:
        raise ToolProcessMisspoke(f"the plugin {plugin} must have 1 to {_MOST_TOOLS} tools")
    if len({tool.name for tool in tools}) < len(tools):
        raise ToolProcessMisspoke(f"the plugin {plugin} has two tools of one name")
    return tuple(_offered(plugin, tool) for tool in tools)


def _offered(plugin: str, tool: "Tool") -> OfferedTool:
    if not _NAME.fullmatch(tool.name):
        raise ToolProcessMisspoke(
            f"a tool of the plugin {plugin} has no fit name", "use up to 40 of a to z, digits and _"
        )
    where = f"the tool {tool.name} of the plugin {plugin}"
    if not 0 < len(tool.description) <= _LONGEST or not tool.description.isprintable():
        raise ToolProcessMisspoke(
            f"{where} has no fit description", f"1 to {_LONGEST} characters, one line"
        )
    timeout_s = tool.timeout_s or DEFAULT_TIMEOUT_S
    if not math.isfinite(timeout_s) or not 0 < timeout_s <= _LONGEST_TIMEOUT_S:
        raise ToolProcessMisspoke(f"{where} has no fit timeout_s", f"at most {_LONGEST_TIMEOUT_S:g}")
    return OfferedTool(
        name=tool.name,
        description=tool.description,
        input_schema=_schema(tool.input_schema, f"{where}, input"),
        output_schema=_schema(tool.output_schema, f"{where}, output") if tool.output_schema else None,
        timeout_s=timeout_s,
        read_only=tool.read_only,
    )


def _schema(text: bytes, where: str) -> Mapping[str, Any]:
    if len(text) > _LARGEST_SCHEMA:
        raise ToolProcessMisspoke(f"{where}: the schema has more than {_LARGEST_SCHEMA} bytes")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        raise ToolProcessMisspoke(f"{where}: the schema is not JSON") from None
    if not isinstance(schema, dict):
        raise ToolProcessMisspoke(f"{where}: the schema is not an object")
    return schema
