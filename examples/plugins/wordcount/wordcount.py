"""Two tools that count: the smallest tool process that is of some use."""

from collections import Counter
from typing import Any

from contextd.plugin_kit.serving import Failure, Tool, serve

TEXT = {"type": "string", "maxLength": 1_000_000, "description": "What to count in"}
NUMBER = {"type": "integer"}


def count(ask: dict[str, Any]) -> dict[str, int]:
    """Count the lines, words and characters of a text."""
    text = ask["text"]
    return {"lines": len(text.splitlines()), "words": len(text.split()), "characters": len(text)}


def frequent(ask: dict[str, Any]) -> dict[str, Any]:
    """List the words that a text uses most."""
    words = Counter(ask["text"].lower().split())
    if not words:
        raise Failure("there is no word in the text")
    return {
        "words": [{"word": word, "times": times} for word, times in words.most_common(ask.get("most", 10))]
    }


WORD = {
    "type": "object",
    "properties": {"word": {"type": "string"}, "times": NUMBER},
    "required": ["word", "times"],
}

if __name__ == "__main__":
    serve(
        Tool(
            count,
            input={"text": TEXT},
            output={"lines": NUMBER, "words": NUMBER, "characters": NUMBER},
            read_only=True,
        ),
        Tool(
            frequent,
            input={"text": TEXT, "most": {"type": "integer", "minimum": 1, "maximum": 100}},
            optional=["most"],
            output={"words": {"type": "array", "items": WORD}},
            read_only=True,
        ),
    )
