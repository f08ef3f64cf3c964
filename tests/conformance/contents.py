"""Tools, resources and prompts with fixed contents: text, image, sound, embedded resources."""

import base64
import json
import struct
import zlib

import mcp_types as types

from conformance.tool import Answer, Context, FixtureTool, text


def _png() -> bytes:
    """One black pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def _wav() -> bytes:
    """One silent sample."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    body = b"WAVE" + form + struct.pack("<4sI", b"data", 2) + b"\x80\x80"
    return struct.pack("<4sI", b"RIFF", len(body)) + body


PNG = base64.b64encode(_png()).decode()
WAV = base64.b64encode(_wav()).decode()

IMAGE = types.ImageContent(data=PNG, mime_type="image/png")
SOUND = types.AudioContent(data=WAV, mime_type="audio/wav")


def embedded(uri: str, words: str, mime_type: str = "text/plain") -> types.EmbeddedResource:
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    return types.EmbeddedResource(resource=contents)


def _always(name: str, *content: types.ContentBlock) -> FixtureTool:
    async def run(ctx: Context, params: types.CallToolRequestParams) -> Answer:
        return types.CallToolResult(content=list(content))

    return FixtureTool(name, run)


async def _fails(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    failed = text("This tool fails, as it is meant to")
    return failed.model_copy(update={"is_error": True})


CONTENT_TOOLS = (
    _always("test_simple_text", types.TextContent(text="A plain text")),
    _always("test_image_content", IMAGE),
    _always("test_audio_content", SOUND),
    _always("test_embedded_resource", embedded("test://embedded-resource", "An embedded text")),
    _always(
        "test_multiple_content_types",
        types.TextContent(text="Text, image and resource"),
        IMAGE,
        embedded("test://mixed-content-resource", '{"test": "data"}', "application/json"),
    ),
    FixtureTool("test_error_handling", _fails),
)

# --- resources ------------------------------------------------------------------------

RESOURCES = (
    types.Resource(uri="test://static-text", name="static-text", mime_type="text/plain"),
    types.Resource(uri="test://static-binary", name="static-binary", mime_type="image/png"),
    types.Resource(uri="test://watched-resource", name="watched-resource", mime_type="text/plain"),
)
TEMPLATES = (
    types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", mime_type="application/json"
    ),
)


def contents_of(uri: str) -> types.TextResourceContents | types.BlobResourceContents | None:
    match uri.removeprefix("test://").split("/"):
        case ["static-text"]:
            return types.TextResourceContents(uri=uri, mime_type="text/plain", text="A static text")
        case ["static-binary"]:
            return types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        case ["watched-resource"]:
            return types.TextResourceContents(uri=uri, mime_type="text/plain", text="A watched text")
        case ["template", id, "data"]:
            words = json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})
            return types.TextResourceContents(uri=uri, mime_type="application/json", text=words)
        case _:
            return None


# --- prompts --------------------------------------------------------------------------


def _prompt(name: str, *arguments: str) -> types.Prompt:
    wanted = [types.PromptArgument(name=argument, required=True) for argument in arguments]
    return types.Prompt(name=name, description="Wanted by the conformance suite", arguments=wanted)


PROMPTS = (
    _prompt("test_simple_prompt"),
    _prompt("test_prompt_with_arguments", "arg1", "arg2"),
    _prompt("test_prompt_with_embedded_resource", "resourceUri"),
    _prompt("test_prompt_with_image"),
)


def messages_of(name: str, arguments: dict[str, str]) -> types.GetPromptResult | None:
    match name:
        case "test_simple_prompt":
            return said(types.TextContent(text="A plain prompt"))
        case "test_prompt_with_arguments":
            words = f"arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"
            return said(types.TextContent(text=words))
        case "test_prompt_with_embedded_resource":
            return said(embedded(arguments.get("resourceUri", ""), "An embedded text"))
        case "test_prompt_with_image":
            return said(IMAGE)
        case _:
            return None


def said(*contents: types.ContentBlock) -> types.GetPromptResult:
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=content) for content in contents]
    )
