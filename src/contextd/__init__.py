"""contextd: a local-first daemon that gives coding agents memory, search and safe tools over MCP."""

__version__ = "0.1.0"
