"""Secrets out of text: rules as data, and the scrubber."""
