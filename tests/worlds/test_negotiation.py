"""The negotiation dialogue: what acts do, what is understood, what an agreement pays, and what it looks like."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from multiadvisor.envs.worlds.negotiation import ACCEPT, END, INSIST, PROPOSE, REPEAT, Negotiation
from refusal import refused


def dialogue(seed=0, **options):
    env = Negotiation(**options)
    env.reset(seed=seed)
    return env


def test_gymnasiums_checker_has_nothing_to_say():
    check_env(gymnasium.make("multiadvisor/Negotiation-v0", disable_env_checker=True).unwrapped, skip_render_check=True)


def test_who_accepts_what_was_said_gets_the_mean_of_what_both_save():
    env = dialogue(error=0.0)
    best = int(env.costs[1].argmin())
    assert env.heard == best, "the user proposes what is cheapest to it"
    _, reward, over, _, _ = env.step(ACCEPT)
    assert over
    assert reward == pytest.approx(1.0 - env.costs[:, best].mean())
    selfish = dialogue(error=0.0, cooperation=0.0)
    assert selfish.step(ACCEPT)[1] == pytest.approx(1.0 - selfish.costs[0, best])


def test_a_misunderstanding_costs_one():
    env = dialogue(error=0.99)
    assert env.heard != env.wanted
    assert env.step(ACCEPT)[1:3] == (-1.0, True)
    assert "misunderstanding" in env.render()


def test_what_is_misunderstood_is_so_at_the_rate_and_less_clear():
    env = dialogue(error=0.3)
    heard = [env._understood(2) for _ in range(4000)]
    wrong = np.array([option != 2 for option, _ in heard])
    clarity = np.array([score for _, score in heard])
    assert wrong.mean() == pytest.approx(0.3, abs=0.03)
    assert clarity[~wrong].mean() > clarity[wrong].mean() + 0.15
    assert {option for option, _ in heard} == set(range(4))


def test_proposals_go_down_the_systems_list_and_insisting_repeats_one():
    env = dialogue(error=0.0, patience=99)
    env.rank[:] = 99  # a user that accepts nothing
    said = []
    for action in (INSIST, INSIST, PROPOSE, INSIST, REPEAT, PROPOSE, PROPOSE, PROPOSE):
        env.step(action)
        said.append(env.proposals)
    assert said == [1, 1, 2, 2, 2, 3, 4, 4]
    assert f"proposes option {env.mine[1]}" in env.render()


def test_the_user_gives_in_with_time_and_up_in_the_end():
    env = dialogue(error=0.0)
    env.rank[:] = [2, 2, 2, 2]  # each is its third best
    over = [env.step(INSIST)[2] for _ in range(4)]
    assert over == [False, False, False, True], "after four steps the three best will do"
    env = dialogue(error=0.0, patience=3)
    assert [env.step(REPEAT)[1:3] for _ in range(3)] == [(0.0, False), (0.0, False), (0.0, True)]
    assert dialogue().step(END)[1:3] == (0.0, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"options": 1}, "2 to 100"), ({"error": 1.0}, "below 1"), ({"cooperation": 2}, "between 0 and 1"),
     ({"patience": 0}, "at least 1 step"), ({"render_mode": "human"}, "shown as text")],
)  # fmt: skip
def test_what_cannot_be(options, message):
    refused(message, Negotiation, **options)
