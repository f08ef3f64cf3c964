"""What a go.mod says of its module."""

import re
from dataclasses import dataclass
from typing import Final

_MODULE: Final = re.compile(r'^[ \t]*module[ \t]+(?:"([^"\n]+)"|([^\s"/][^\s"]*))', re.MULTILINE)
_GO: Final = re.compile(r"^[ \t]*go[ \t]+(\d[\w.]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class GoModule:
    name: str | None = None
    go_version: str | None = None


def go_module(text: str) -> GoModule:
    bare = re.sub(r"//[^\n]*", "", text)
    module, version = _MODULE.search(bare), _GO.search(bare)
    return GoModule(module[1] or module[2] if module else None, version[1] if version else None)
