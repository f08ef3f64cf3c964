"""The error patterns that ship: one TOML file an ecosystem. `docs/patterns.md` says how to write one."""
