"""The only place where a Qdrant filter is built: no other code names a project.

So one drawer's records cannot reach another's caller by a condition that somebody forgot.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from qdrant_client import models

from contextd.adapters.qdrant.points import point_id
from contextd.domain.records import Entry, Filter, Order, Project


def where(
    projects: Iterable[Project] | None,
    *must: models.Condition,
    but_not: Sequence[models.Condition] = (),
) -> models.Filter:
    """Records of these projects, none of them for an empty list, of every project for None."""
    if projects is None:
        return models.Filter(must=list(must), must_not=[_EMPTY_PROJECT, *but_not])
    keys = sorted({project.key for project in projects})
    return models.Filter(must=[_any_of("project", keys), *must], must_not=list(but_not))


_EMPTY_PROJECT = models.IsEmptyCondition(is_empty=models.PayloadField(key="project"))
"""True of the drawers' markers, which are no records."""


def matching(filter: Filter, *must: models.Condition) -> models.Filter:
    conditions = [_any_of("kind", filter.kinds), *(_any_of("tags", [tag]) for tag in filter.tags)]
    if filter.since is not None or filter.until is not None:
        made = models.DatetimeRange(gte=filter.since, lt=filter.until)
        conditions.append(models.FieldCondition(key="created_at", range=made))
    return where(filter.projects, *conditions, *must)


def markers() -> models.Filter:
    """The points that say which drawers there are, and hold no record."""
    return models.Filter(must=[_EMPTY_PROJECT])


def these(ids: Sequence[str]) -> models.Condition:
    return models.HasIdCondition(has_id=list(ids))


def at(order: Order, moment: datetime) -> models.Condition:
    return models.FieldCondition(key=order, range=models.DatetimeRange(gte=moment, lte=moment))


def unchanged(entries: Sequence[Entry]) -> models.Filter:
    """Points that still hold the record that each entry was made from."""
    return models.Filter(should=[_as_it_was(entry) for entry in entries])


def _as_it_was(entry: Entry) -> models.Filter:
    record = entry.record
    id = point_id(record.project, record.id)
    return where([record.project], these([id]), at("updated_at", record.updated_at))


def _any_of(key: str, values: Sequence[str]) -> models.Condition:
    return models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
