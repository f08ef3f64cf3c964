"""The rules of each feature, on dataclasses; one file a feature."""
