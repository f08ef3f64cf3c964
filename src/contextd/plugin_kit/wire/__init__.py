"""Generated from plugin_v1.proto by `make proto`."""
