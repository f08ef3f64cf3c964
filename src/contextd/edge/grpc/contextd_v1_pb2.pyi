from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListToolsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListToolsReply(_message.Message):
    __slots__ = ("tools",)
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedCompositeFieldContainer[ListedTool]
    def __init__(self, tools: _Optional[_Iterable[_Union[ListedTool, _Mapping]]] = ...) -> None: ...

class ListedTool(_message.Message):
    __slots__ = ("name", "description", "listing")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    LISTING_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    listing: bytes
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., listing: _Optional[bytes] = ...) -> None: ...

class GetSchemaRequest(_message.Message):
    __slots__ = ("tool",)
    TOOL_FIELD_NUMBER: _ClassVar[int]
    tool: str
    def __init__(self, tool: _Optional[str] = ...) -> None: ...

class GetSchemaReply(_message.Message):
    __slots__ = ("schema", "tool_md", "fault")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    TOOL_MD_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    schema: bytes
    tool_md: str
    fault: Fault
    def __init__(self, schema: _Optional[bytes] = ..., tool_md: _Optional[str] = ..., fault: _Optional[_Union[Fault, _Mapping]] = ...) -> None: ...

class ExecuteRequest(_message.Message):
    __slots__ = ("tool", "arguments")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    tool: str
    arguments: bytes
    def __init__(self, tool: _Optional[str] = ..., arguments: _Optional[bytes] = ...) -> None: ...

class ExecuteReply(_message.Message):
    __slots__ = ("data", "refs", "tokens_used", "has_more", "truncated", "warning", "fault")
    DATA_FIELD_NUMBER: _ClassVar[int]
    REFS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_USED_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    refs: _containers.RepeatedScalarFieldContainer[str]
    tokens_used: int
    has_more: bool
    truncated: bool
    warning: str
    fault: Fault
    def __init__(self, data: _Optional[bytes] = ..., refs: _Optional[_Iterable[str]] = ..., tokens_used: _Optional[int] = ..., has_more: _Optional[bool] = ..., truncated: _Optional[bool] = ..., warning: _Optional[str] = ..., fault: _Optional[_Union[Fault, _Mapping]] = ...) -> None: ...

class Fault(_message.Message):
    __slots__ = ("category", "code", "message", "details")
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    category: str
    code: str
    message: str
    details: bytes
    def __init__(self, category: _Optional[str] = ..., code: _Optional[str] = ..., message: _Optional[str] = ..., details: _Optional[bytes] = ...) -> None: ...

class ExecuteEvent(_message.Message):
    __slots__ = ("progress", "reply")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    progress: Progress
    reply: ExecuteReply
    def __init__(self, progress: _Optional[_Union[Progress, _Mapping]] = ..., reply: _Optional[_Union[ExecuteReply, _Mapping]] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("done", "total", "message")
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    done: float
    total: float
    message: str
    def __init__(self, done: _Optional[float] = ..., total: _Optional[float] = ..., message: _Optional[str] = ...) -> None: ...

class GetRefRequest(_message.Message):
    __slots__ = ("ref", "start_line", "end_line", "pattern", "token_budget")
    REF_FIELD_NUMBER: _ClassVar[int]
    START_LINE_FIELD_NUMBER: _ClassVar[int]
    END_LINE_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    TOKEN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    ref: str
    start_line: int
    end_line: int
    pattern: str
    token_budget: int
    def __init__(self, ref: _Optional[str] = ..., start_line: _Optional[int] = ..., end_line: _Optional[int] = ..., pattern: _Optional[str] = ..., token_budget: _Optional[int] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("status", "version", "uptime_s", "tools", "parts", "pid")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    UPTIME_S_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    status: str
    version: str
    uptime_s: float
    tools: int
    parts: _containers.RepeatedCompositeFieldContainer[Part]
    pid: int
    def __init__(self, status: _Optional[str] = ..., version: _Optional[str] = ..., uptime_s: _Optional[float] = ..., tools: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[Part, _Mapping]]] = ..., pid: _Optional[int] = ...) -> None: ...

class Part(_message.Message):
    __slots__ = ("name", "error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    error: str
    def __init__(self, name: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class ShutdownRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShutdownReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
