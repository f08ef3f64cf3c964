"""The seed's tables of limits and timeouts, transcribed, against the registry."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextd.domain import limits
from contextd.domain.limits import Allowance, Rate
from contextd.domain.sandboxing import Limits
from contextd.plugins import load_extensions
from contextd.tools.registry import Registry

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
    ("remediation_save", "error_message"): {"maxLength": 10000},
    ("remediation_save", "stack_trace"): {"maxLength": 50000},
    ("remediation_save", "tags"): {"maxItems": 20},
    ("remediation_save", "context"): {"maxProperties": 50},
    ("remediation_search", "error_message"): {"maxLength": 10000},
    ("remediation_search", "stack_trace"): {"maxLength": 50000},
    ("remediation_search", "limit"): {"default": 5, "maximum": 100},
    ("remediation_search", "min_score"): {"default": 0.5, "minimum": 0, "maximum": 1},
    ("troubleshoot", "error_message"): {"maxLength": 10000},
    ("troubleshoot", "stack_trace"): {"maxLength": 50000},
    ("troubleshoot", "mode"): {"default": "auto", "enum": ["auto", "interactive", "guided"]},
    ("troubleshoot", "top_k"): {"default": 5, "maximum": 100},
    ("list_patterns", "limit"): {"default": 10, "maximum": 100},
    ("skill_create", "name"): {"maxLength": 200},
    ("skill_create", "description"): {"maxLength": 2000},
    ("skill_create", "content"): {"maxLength": 50000},
    ("skill_create", "tags"): {"maxItems": 20},
    ("skill_search", "query"): {"maxLength": 1000},
    ("skill_search", "top_k"): {"default": 5, "maximum": 100},
    ("skill_search", "detail"): {"default": "full", "enum": ["refs", "preview", "full"]},
    ("skill_list", "limit"): {"default": 10, "maximum": 100},
    ("skill_list", "offset"): {"default": 0},
    ("skill_list", "sort_by"): {"enum": ["created_at", "updated_at", "usage_count", "success_rate"]},
    ("memory_store", "title"): {"maxLength": 500},
    ("memory_store", "description"): {"maxLength": 5000},
    ("memory_store", "tags"): {"maxItems": 20},
    ("memory_search", "query"): {"maxLength": 1000},
    ("memory_search", "limit"): {"default": 5, "maximum": 100},
    ("memory_search", "detail"): {"default": "refs", "enum": ["refs", "preview", "full"]},
}

SEED_REQUIRED = {
    "checkpoint_save": {"summary", "project_path"},
    "checkpoint_search": {"query"},
    "checkpoint_list": set[str](),
    "checkpoint_restore": {"id"},
    "remediation_save": {"error_message", "error_type", "solution"},
    "remediation_search": {"error_message"},
    "troubleshoot": {"error_message"},
    "list_patterns": set[str](),
    "skill_create": {"name", "description", "content", "version", "author", "category"},
    "skill_search": {"query"},
    "skill_list": set[str](),
    "skill_update": {"id"},
    "skill_delete": {"id"},
    "skill_apply": {"id"},
    "status": set[str](),
    "collection_create": {"project_path"},
    "collection_delete": {"project_path"},
    "collection_list": set[str](),
    "memory_store": {"project_path", "title", "content"},
    "memory_search": {"query", "project_path"},
    "memory_get": {"id"},
    "memory_feedback": {"id", "helpful"},
    "memory_consolidate": {"project_path"},
}

SEED_OUTPUTS = {
    "checkpoint_save": {"id", "summary", "created_at", "token_count"},
    "checkpoint_search": {"results", "query", "top_k"},
    "checkpoint_list": {"checkpoints", "total", "limit", "offset"},
    "checkpoint_restore": {"id", "level", "summary", "context", "state", "fidelity", "refs"},
    "troubleshoot": {
        "session_id",
        "root_cause",
        "confidence",
        "confidence_score",
        "category",
        "severity",
        "hypotheses",
        "similar_issues",
        "recommended_actions",
        "diagnostic_steps",
        "time_taken_ms",
        "diagnosed_at",
    },
    "list_patterns": {"patterns", "total"},
    "remediation_save": {"id", "error_message", "error_type", "solution", "created_at"},
    "remediation_search": {"results", "query", "total"},
    "skill_create": {"id", "name", "version", "token_count", "created_at"},
    "skill_search": {"results", "query", "top_k"},
    "skill_list": {"skills", "total", "limit", "offset"},
    "skill_update": {"id", "name", "version", "updated_at"},
    "skill_delete": {"id", "message"},
    "skill_apply": {
        "id",
        "name",
        "content",
        "prerequisites",
        "expected_outcome",
        "usage_count",
        "success_rate",
    },
    "status": {"status", "version", "uptime", "services", "metrics", "last_updated"},
    "memory_store": {"id", "confidence", "merged_into"},
    "memory_search": {"results"},
    "memory_get": {"id", "title", "description", "content", "anchors", "trust", "confidence"},
    "memory_feedback": {"id", "confidence"},
    "memory_consolidate": {"created", "archived", "skipped"},
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
    assert others.pop("index_codebase") == 1_800
    assert others.pop("safe_bash") == Limits().timeout_s == 120
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
