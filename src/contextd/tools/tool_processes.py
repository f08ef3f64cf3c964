"""Tools that processes of their own offer: declared from what they said when they were installed."""

from pydantic import ValidationError

from contextd.domain.callers import Caller
from contextd.domain.errors import ToolProcessMisspoke
from contextd.domain.limits import DEFAULT_TOKENS
from contextd.domain.tool_processes import Installed, OfferedTool
from contextd.services.tool_processes import ToolProcesses
from contextd.tools.declaration import AnyTool, Input, Output, Tool
from contextd.tools.schema_models import input_model, output_model


def tools_of(installed: Installed) -> list[AnyTool]:
    """Raises NotInstallable for a schema that is not understood."""
    return [_tool(installed.manifest.name, offered) for offered in installed.tools]


def _tool(plugin: str, offered: OfferedTool) -> AnyTool:
    name = f"{plugin}_{offered.name}"
    output = output_model(offered.output_schema, f"{name}'s output")

    async def run(processes: ToolProcesses, ask: Input, caller: Caller) -> Output:
        given = ask.model_dump(mode="json", exclude_unset=True)
        answer = await processes.call(plugin, offered.name, given, offered.timeout_s, caller)
        try:
            return output.model_validate(answer)
        except ValidationError:
            raise ToolProcessMisspoke(f"the answer of {name} does not fit its own schema") from None

    return Tool(
        name=name,
        description=offered.description,
        toolset="plugins",
        service=ToolProcesses,
        input=input_model(offered.input_schema, f"{name}'s input"),
        output=output,
        run=run,
        keeps_time=False,
        timeout_s=offered.timeout_s,
        read_only=offered.read_only,
        destructive=not offered.read_only,
        idempotent=offered.read_only,
        examples=(),
        budget=DEFAULT_TOKENS,
        not_for="",
        asked="",
        lean=(),
        lean_only=False,
    )
