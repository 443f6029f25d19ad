"""Jobs are data: named by what they are, refused where they are not data, resolved in a closed registry."""

import hashlib
import importlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multiadvisor.runs.jobs import KINDS, Job, experiments, perform
from refusal import refused

DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.text(), DATA, max_size=4))
def test_a_job_is_known_by_its_content_alone(config):
    again = json.loads(json.dumps(dict(reversed(config.items()))))
    assert Job("train", config).id == Job("train", again).id
    assert Job("train", config) == Job("train", again)
    assert Job("train", config).id != Job("tours", config).id
    assert Job("train", {**config, "one more": 1}).id != Job("train", config).id


def test_the_identity_is_written_down():
    """It names files in folders that people keep: it may not change unnoticed."""
    text = '{"config":{"a":[1,2.5],"b":null},"format":1,"kind":"train"}'
    assert Job("train", {"b": None, "a": (1, 2.5)}).id == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_a_job_does_not_follow_the_dictionary_it_was_made_from():
    config = {"inner": {"value": 1}}
    job = Job("train", config)
    before = job.id
    config["inner"]["value"] = 2
    assert job.config == {"inner": {"value": 1}}
    assert job.id == before


@pytest.mark.parametrize("config", [{"x": math.nan}, {"x": math.inf}, {"x": {1, 2}}, {"x": print}, [1], "text"])
def test_what_is_no_data_is_refused(config):
    refused("job is", Job, "train", config)


@pytest.mark.parametrize("kind", ["os:system", "multiadvisor.runs.training", "trian", ""])
def test_kinds_are_a_closed_list(kind):
    refused("unknown kind", Job, kind, {})
    refused("unknown kind", perform, kind, {}, None, lambda fraction: None)


def test_every_kind_leads_to_a_function():
    experiments()
    assert len(KINDS) > 10
    for kind in KINDS.values():
        assert callable(getattr(importlib.import_module(kind.module), kind.function))
