"""contextd-proxy: a tool as a program. The standard library alone, because its start is its price."""
