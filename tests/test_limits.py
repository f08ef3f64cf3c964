"""The seed's tables of limits and timeouts, transcribed, against the registry."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextd.domain import limits
from contextd.domain.limits import Allowance, Rate
from contextd.plugins import load_extensions
from contextd.tools.declaration import Registry

SEED_CONSTANTS = {
    "MAX_SUMMARY_LENGTH": 500,
    "MAX_DESCRIPTION_LENGTH": 5000,
    "MAX_ERROR_MESSAGE_LENGTH": 10000,
    "MAX_STACK_TRACE_LENGTH": 50000,
    "MAX_TAGS": 20,
    "MAX_TAG_LENGTH": 50,
    "MAX_QUERY_LENGTH": 1000,
    "MAX_CONTEXT_FIELDS": 50,
    "MAX_CONTEXT_VALUE_LENGTH": 1000,
}

SEED_TIMEOUTS_S = {
    "checkpoint_save": 30,
    "checkpoint_search": 10,
    "checkpoint_list": 5,
    "remediation_save": 30,
    "remediation_search": 10,
    "troubleshoot": 60,
    "list_patterns": 5,
    "index_repository": 300,
    "skill_create": 120,
    "skill_search": 10,
    "skill_list": 30,
    "skill_update": 120,
    "skill_delete": 30,
    "skill_apply": 30,
    "status": 30,
    "analytics_get": 30,
}

SEED_FIELDS = {
    ("checkpoint_save", "summary"): {"maxLength": 500},
    ("checkpoint_save", "description"): {"maxLength": 5000},
    ("checkpoint_save", "tags"): {"maxItems": 20},
    ("checkpoint_save", "context"): {"maxProperties": 50},
    ("checkpoint_search", "query"): {"maxLength": 1000},
    ("checkpoint_search", "top_k"): {"default": 5, "maximum": 100},
    ("checkpoint_list", "limit"): {"default": 10, "maximum": 100},
    ("checkpoint_list", "offset"): {"default": 0},
    ("checkpoint_list", "sort_by"): {"enum": ["created_at", "updated_at"]},
}

SEED_REQUIRED = {
    "checkpoint_save": {"summary", "project_path"},
    "checkpoint_search": {"query"},
    "checkpoint_list": set[str](),
    "checkpoint_restore": {"id"},
    "status": set[str](),
    "collection_create": {"project_path"},
    "collection_delete": {"project_path"},
    "collection_list": set[str](),
}

SEED_OUTPUTS = {
    "checkpoint_save": {"id", "summary", "created_at", "token_count"},
    "checkpoint_search": {"results", "query", "top_k"},
    "checkpoint_list": {"checkpoints", "total", "limit", "offset"},
    "checkpoint_restore": {"id", "level", "summary", "context", "state", "fidelity", "refs"},
    "status": {"status", "version", "uptime", "services", "metrics", "last_updated"},
}

SEED_RATES = {"troubleshoot": Rate(2, 5), "skill_create": Rate(5, 10)}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry(tuple(load_extensions().tools))


@pytest.mark.parametrize(("name", "value"), SEED_CONSTANTS.items())
def test_a_constant_is_the_seeds(name: str, value: int) -> None:
    assert getattr(limits, name) == value


def test_every_timeout_is_the_seeds(registry: Registry) -> None:
    declared = {tool.name: tool.timeout_s for tool in registry}
    assert {name: declared[name] for name in SEED_TIMEOUTS_S if name in declared} == {
        name: seconds for name, seconds in SEED_TIMEOUTS_S.items() if name in declared
    }
    others = {name: seconds for name, seconds in declared.items() if name not in SEED_TIMEOUTS_S}
    assert set(others.values()) == {30.0}


@pytest.mark.parametrize(("place", "bounds"), SEED_FIELDS.items())
def test_a_fields_bounds_are_the_seeds(
    registry: Registry, place: tuple[str, str], bounds: dict[str, Any]
) -> None:
    tool, field = place
    schema = registry[tool].input_schema["properties"][field]
    assert {key: schema.get(key) for key in bounds} == bounds


@pytest.mark.parametrize(("name", "required"), SEED_REQUIRED.items())
def test_required_fields_are_the_seeds(registry: Registry, name: str, required: set[str]) -> None:
    assert set(registry[name].input_schema.get("required", ())) == required


@pytest.mark.parametrize(("name", "fields"), SEED_OUTPUTS.items())
def test_an_answer_has_every_field_of_the_seed(registry: Registry, name: str, fields: set[str]) -> None:
    assert fields <= set(registry[name].output_schema["properties"])


def test_rates_are_the_seeds() -> None:
    assert limits.DEFAULT_RATE == Rate(10, 20)
    assert limits.TOOL_RATES == SEED_RATES


def test_a_burst_is_served_and_the_next_waits_for_its_share() -> None:
    allowance = Allowance()
    assert [allowance.take("s", "status", 0.0) for _ in range(20)] == [0.0] * 20
    assert allowance.take("s", "status", 0.0) == pytest.approx(0.1)
    assert allowance.take("s", "status", 0.1) == 0.0


def test_callers_and_tools_have_buckets_of_their_own() -> None:
    allowance = Allowance(Rate(1, 1))
    assert allowance.take("a", "status", 0.0) == 0.0
    assert allowance.take("a", "status", 0.0) > 0
    assert allowance.take("a", "checkpoint_list", 0.0) == 0.0
    assert allowance.take("b", "status", 0.0) == 0.0


def test_idle_buckets_are_forgotten() -> None:
    allowance = Allowance()
    for caller in range(1000):
        allowance.take(f"session-{caller}", "status", float(caller))
    assert len(allowance) <= 3


@given(st.lists(st.floats(min_value=0, max_value=0.5), min_size=1, max_size=200))
def test_no_more_passes_than_burst_and_rate_allow(gaps: list[float]) -> None:
    allowance, now, passed = Allowance(), 0.0, 0
    for gap in gaps:
        now += gap
        passed += allowance.take("s", "status", now) == 0.0
    assert passed <= 20 + 10 * now + 1e-6
