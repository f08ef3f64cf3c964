"""schema.json: a tool whole, for whoever has its folder and not the daemon's list."""

from typing import Any, Final

from contextd import __version__
from contextd.domain.errors import catalogue
from contextd.edge.tool_md import schema_hash
from contextd.tools.declaration import AnyTool

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_EVERYWHERE: Final = ("LIM_", "SEC_001", "SEC_002", "SEC_005", "SRV_", "VAL_", "FOLD_")
"""A branch pays for any call, and so may end any."""
_BY_TOOLSET: Final = {
    "checkpoints": ("REC_",),
    "errors": ("REC_",),
    "skills": ("REC_",),
    "memories": ("REC_", "MEM_"),
    "code": ("IDX_",),
    "safe": ("SBX_", "REC_"),
    "folding": ("REF_",),
    "system": ("REC_", "TOOL_"),
    "plugins": ("PLG_001", "PLG_002", "PLG_003", "SBX_001"),
}
_NEVER_OF_A_TOOL: Final = frozenset({"VAL_012", "REC_003"})
"""Of HTTP's paths and methods."""


def tool_schema(tool: AnyTool) -> dict[str, Any]:
    """Input and output are each a schema of its own, with its own `$id`: their references stay inside."""
    return {
        "name": tool.name,
        "version": __version__,
        "schema": schema_hash(tool),
        "description": tool.description,
        "input": _resource(tool, "input", tool.input_schema),
        "output": _resource(tool, "output", tool.output_schema),
        "annotations": tool.listing["annotations"],
        "examples": [{"title": each.title, "arguments": dict(each.arguments)} for each in tool.examples],
        "errors": error_ids(tool),
    }


def error_ids(tool: AnyTool) -> list[str]:
    """What a call of it may be refused or end with."""
    prefixes = (*_EVERYWHERE, *_BY_TOOLSET.get(tool.toolset, ()))
    known = (fault.id for fault in catalogue())
    return [id for id in known if id.startswith(prefixes) and id not in _NEVER_OF_A_TOOL]


def _resource(tool: AnyTool, part: str, schema: Any) -> dict[str, Any]:
    return {"$schema": _DIALECT, "$id": f"urn:contextd:tool:{tool.name}:{part}", **schema}
