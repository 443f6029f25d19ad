"""The reasons that the page is sent are those of `multiadvisor explain`, whatever the agent and its aggregation."""

import re

import numpy as np
import pytest

import multiadvisor as mad
from explorer.conftest import HEARD, trained
from multiadvisor.analysis.episodes import record
from multiadvisor.explain.explanation import explain_advice
from multiadvisor.explorer.insights import STATIC
from multiadvisor.explorer.questions import Reasons
from multiadvisor.runs.trace import explain_step
from refusal import refused


def cases(combined):
    yield from ((text, agent, record(agent, 1, 0)) for text, agent in combined.items())
    for task, gamma in (("three-fruits", 0.5), ("bridge", 0.9)):
        exact = mad.theory.exact_agent(mad.make(task), "egocentric", gamma)
        yield task, exact, record(exact, 1, 0)
    jobs = trained(mad.make("resource-scheduling"), 3_000, gamma=0.9)
    yield "jobs", jobs, record(jobs, 1, 0, advice=True)


@pytest.mark.slow
def test_every_reason_is_the_librarys(combined):
    told = []
    for name, agent, trace in cases(combined):
        reasons = Reasons(agent, trace, 0)
        shown, arrays = reasons.all()
        assert ("difference" in arrays) == (name in HEARD)
        for step in range(1, int(trace.length[0]), 6):
            why = explain_step(agent, trace, 0, step)
            told.append(why.sentence)
            assert (shown[step]["sentence"], shown[step]["other"]) == (why.sentence, why.other), (name, step)
            assert [agent.task.names[j] for j in shown[step]["plus"]] == list(why.msx_plus)
            assert [agent.task.names[j] for j in shown[step]["minus"]] == list(why.msx_minus)
            other = step % len(agent.task.actions)
            if other != why.chosen:
                against = explain_step(agent, trace, 0, step, against=other)
                asked = reasons.one(step, against=other)
                told.append(against.sentence)
                assert asked["sentence"] == against.sentence, (name, step)
                assert sorted(asked["differences"]) == sorted(against.differences.values())
    for words in ("is the strongest wish; the next,", "the strongest wish for ", " votes (", " by ranks: ", "outweigh ",
                  ", into the wall, rather than", " more, ", "outweighs "):  # fmt: skip
        assert any(words in text for text in told), words


@pytest.mark.slow
def test_with_other_weights_it_is_what_python_says_with_these(combined):
    weights = np.random.default_rng(0).uniform(-1.0, 2.0, 77).round(2)
    for text, agent in combined.items():
        trace = record(agent, 1, 0)
        for step in (3, 40):
            why = explain_step(agent, trace, 0, step)
            own = weights[[agent.task.names.index(name) for name in why.names]]
            expected = explain_advice(
                why.names, why.advice, own, why.actions, action=why.action, groups=why.groups, here=why.here,
                aggregation=text, aggregator=why.aggregator,
            )  # fmt: skip
            assert Reasons(agent, trace, 0).one(step, weights.tolist())["sentence"] == expected.sentence


def test_a_random_step_has_no_other_reason():
    agent = mad.theory.exact_agent(mad.make("three-fruits"), "egocentric", 0.4)
    trace = record(agent, 1, 0, epsilon=1.0)
    assert Reasons(agent, trace, 0).one(0)["sentence"].endswith(" to explore, at random")
    refused("nothing is done in step", lambda: Reasons(agent, trace, 0).one(int(trace.length[0])))


def test_the_page_has_no_words_for_reasons():
    """A second author would drift from the first."""
    script = "".join(path.read_text("utf-8") for path in STATIC.glob("*.js"))
    for words in ("outweigh", "rather than", "nobody objects", "strongest wish for", "would be worse", "votes"):
        assert not re.search(words, re.sub(r"//.*", "", script)), words
