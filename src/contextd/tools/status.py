"""The daemon's own state, as an agent calls it."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from contextd.domain.callers import Caller
from contextd.services.health import Health, Part
from contextd.tools.declaration import Example, Input, Output, tool


class StatusAsk(Input):
    pass


class ServiceStatus(Output):
    status: Literal["healthy", "unhealthy", "unknown"]
    error: str | None = None
    level: str | None = Field(
        None, description="how the sandbox keeps commands apart; whether embedding catches up"
    )


class StatusMetrics(Output):
    tools_available: int
    mcp_server: str
    embedding_model: str


class Status(Output):
    status: Literal["healthy", "degraded", "unhealthy"]
    version: str
    uptime: str
    services: dict[str, ServiceStatus]
    metrics: StatusMetrics
    last_updated: datetime


@tool(
    toolset="system",
    not_for="a project's code index: get_status; figures of use: analytics_get",
    asked="is the daemon up",
    read_only=True,
    examples=(Example("is all well", {}),),
)
async def status(health: Health, ask: StatusAsk, caller: Caller) -> Status:
    """Say whether contextd is healthy, which version it is and what is degraded."""
    report = await health.report()
    services = {
        part.name: ServiceStatus(status=_state(part), error=part.error, level=part.level)
        for part in report.parts
    }
    return Status(
        status=report.state,
        version=report.version,
        uptime=_uptime(report.uptime_s),
        services=services,
        metrics=StatusMetrics(
            tools_available=report.tools, mcp_server="running", embedding_model=report.model
        ),
        last_updated=report.at,
    )


def _state(part: Part) -> Literal["healthy", "unhealthy", "unknown"]:
    if part.error:
        return "unhealthy"
    return "unknown" if part.level == "unknown" else "healthy"


def _uptime(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"


TOOLS = (status,)
