"""The scale-out store: one Qdrant collection for all drawers, each behind its project's filter."""

from contextd.adapters.qdrant.store import QdrantStore

__all__ = ["QdrantStore"]
