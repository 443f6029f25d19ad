"""The detector names place, step and holders where a trap is known, and says nothing of episodes that come to an
end."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from command_line import printed
from measures import stuck as known
from measures.stuck import FIRST, PLANTED, QUIET, Fork, planted, trained
from multiadvisor.analysis.episodes import play, record
from multiadvisor.analysis.stuck import LEAST, ends_of_parts, find_stuck, resting
from multiadvisor.analysis.theory.attractors import attractors
from multiadvisor.analysis.theory.learned_values import learned_solution
from multiadvisor.runs.trace import explain_step


# ---- one walk --------------------------------------------------------------------------------------------------------
def walked(places, gain=0.0, finished=False, actions=None):
    places = np.array(places)
    gains = np.broadcast_to(gain, len(places) - 1)
    return resting(places, np.zeros(len(places) - 1, int) if actions is None else actions, gains, finished)


def test_kinds_and_steps():
    assert walked([1, 2, 3, *[7] * 20]) == (3, 22, (7,), "stands still")
    assert walked([1, 2, 3, *[7, 8] * 10]) == (3, 22, (7, 8), "goes to and fro")
    assert walked([1, 2, 3, *[7, 8, 9] * 10]) == (3, 32, (7, 8, 9), "goes in circles")
    assert walked([7, 1, 2, 7, 3, *[7] * 20]).since == 5  # it was there before, but not for good
    assert walked(list(range(40))) is None
    assert walked([7] * LEAST) is None
    assert walked([7] * (LEAST + 1)).since == 0
    assert walked([1, *[7] * 20], finished=True) is None
    assert walked([1, *[7] * 40, *range(8, 12)]) == (1, 41, (7,), "stands still")  # it got away, too late
    assert walked([1, *[7] * 20, *range(8, 60)]) is None


def test_what_is_done_for_good_ends_a_rest():
    places = np.array([1, *[7] * 40, 8, 7, 7, 7, 7])
    done = np.zeros(len(places) - 1, bool)
    done[40] = True
    nothing = np.zeros(len(done))
    assert resting(places, done * 0, nothing, False, done) == (1, 41, (7,), "stands still")
    assert resting(places, done * 0, nothing, False).until == len(done)
    done[[14, 27]] = True
    assert resting(places, done * 0, nothing, False, done) is None  # less than a third of the episode
    active = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1], [1, 1, 0], [1, 1, 0]], bool)
    assert ends_of_parts(active).tolist() == [False, False, True, False, False]


def test_what_pays_is_not_stuck_and_what_costs_is():
    there = [7, 8] * 20
    assert walked(there, gain=1.0) is None
    assert walked(there, gain=-1.0) is not None
    shaping = np.tile([1.0, -1.0], 20)[:39]  # a potential: what is gained on the way out is lost on the way back
    assert walked(there, gain=shaping) is not None
    paid = np.zeros(39)
    paid[30] = 1.0
    assert walked(there, gain=paid) is None


def test_who_is_moved_by_chance_has_to_be_there_longer():
    generator = np.random.default_rng(0)
    wind = generator.integers(5, size=61)
    assert walked(wind) is None
    assert walked(generator.integers(5, size=400)).kind == "wanders about"
    steps = generator.integers(2, size=60)
    assert walked(np.concatenate([[0], np.cumsum(steps) % 5]), actions=steps) is not None  # its own actions lead there


# ---- planted traps ---------------------------------------------------------------------------------------------------
BAR = 0.95  # of the episodes: place, step and advisors


@pytest.mark.slow
def test_the_benchmark_finds_that_traps_of_known_worlds_are_named(monkeypatch, capsys):
    pac_boy = {"case": "Pac-Boy, egocentric", "episodes": 0, **dict.fromkeys(("right", *known.Right._fields), 1.0)}
    monkeypatch.setattr(known, "pac_boy_row", lambda seeds, count: pac_boy)  # has a test of its own
    monkeypatch.setattr(known, "EPISODES", 8)
    monkeypatch.setattr(known, "QUIET", {"FrozenLake": QUIET["FrozenLake"]})
    found = printed(capsys, "benchmark", "stuck", "--rounds", "1")
    planted_ones = [row for row in found["rows"] if row["case"].startswith("planted")]
    assert [row["episodes"] for row in planted_ones] == [known.EPISODES] * 3, "the traps hold"
    assert len(found["rows"]) == 9
    assert all(row["right"] >= BAR for row in found["rows"]), found
    assert found["quiet"] == [
        {"case": "FrozenLake", "episodes": 8, "terminated": 8, "raised": 0, "cuts": 0, "raised_when_cut": 0}
    ]
    lines = known.describe("stuck", found).splitlines()
    assert len(lines) == 12
    assert lines[-1].split() == ["FrozenLake", "8", "8", "0", "0", "of", "0"]


def test_whoever_is_wrong_is_judged_so():
    """The yardstick itself: another place, step or holder is no hit, nor is silence."""
    trap, agent = planted("goes to and fro", FIRST), mad.theory.exact_agent(mad.make("two-goal"), "egocentric", 0.9)
    for judge, subject, learner, other, holders in (
        (known.judge_planted, trap, trained(trap.task, "egocentric", trap.gamma), "3", {"coin": 1.0}),
        (known.judge_solved, agent, agent, "elsewhere", {"goal 1": 1.0}),
    ):
        episodes = play(learner, 3)
        (one, *_) = find_stuck(episodes)
        for found, right in (
            (one, (True, True, True)), (None, (False, False, False)), (replace(one, where=other), (False, True, True)),
            (replace(one, since=one.since + 1, steps=one.steps - 1), (True, False, True)),
            (replace(one, held_by=holders), (True, True, False)),
        ):  # fmt: skip
            assert judge(subject, episodes, 0, found) == right


@pytest.mark.parametrize("kind", PLANTED)
def test_the_same_tasks_without_the_trap_raise_nothing(kind):
    episodes = play(trained(planted(kind, FIRST).task, "empathic"), 20)
    assert episodes.terminated.all()
    assert find_stuck(episodes) == []


def test_a_network_is_looked_at_through_its_observations():
    """A network has no local states: what it sees is cut into cells."""
    pytest.importorskip("jax")
    task = mad.Task.from_gymnasium(Fork(1, real=True), name="seen")
    agent = mad.MultiAdvisor(task, planning="egocentric", learner=mad.DQN(hidden=(4,)), seed=2)
    episodes = play(agent, 4)
    found = find_stuck(episodes)
    assert episodes.places.shape[1] == 1
    assert len(found) == 4
    assert [one.episode for one in found] == np.flatnonzero(~episodes.terminated).tolist()
    for one in found:
        assert (one.kind, one.where) == ("stands still", "(1, 0)")


# ---- worlds whose traps are known from theory ------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "gamma"), [("two-goal", 0.9), ("three-fruits", 0.6), ("four-fruits", 0.6)])
def test_gadgets(name, gamma):
    task = mad.make(name)
    agent = mad.theory.exact_agent(task, "egocentric", gamma)
    episodes = play(agent, 20)
    found = find_stuck(episodes)
    assert [one.episode for one in found] == list(range(20))
    solution, here = learned_solution(agent, task.initial_state())
    known = {one.state: one for one in attractors(solution)}[here]
    for one in found:
        assert (one.since, one.kind) == (0, "stands still") or name == "four-fruits"
        assert one.where.startswith(episodes.label(0, 0)) or name == "four-fruits"
        assert set(one.held_by) == set(known.advisors) or name == "four-fruits"
        assert "plan empathically" in one.advice


def test_gadgets_below_the_critical_gamma_raise_nothing():
    for name, gamma in (("two-goal", 0.4), ("three-fruits", 0.4), ("four-fruits", 0.3)):
        assert find_stuck(play(mad.theory.exact_agent(mad.make(name), "egocentric", gamma), 20)) == []


@pytest.mark.slow
def test_pac_boy_with_egocentric_planning():
    """Theory knows from the values, with the ghosts held still, where the greedy walk never earns."""
    row = known.pac_boy_row(range(FIRST, FIRST + 1), 12)
    assert row["episodes"] == 12
    assert row["right"] >= 11 / 12, row


# ---- nothing where nothing is ----------------------------------------------------------------------------------------
@pytest.mark.slow
def test_nothing_is_raised_in_200_episodes_that_come_to_an_end():
    cases = {name: 45 for name in QUIET if name not in ("mountain-car", "racetrack")}
    rows = [known.quiet_row(name, range(FIRST, FIRST + 1), count) for name, count in cases.items()]
    assert sum(row["terminated"] for row in rows) >= 200, rows
    assert sum(row["raised"] for row in rows) == 0, rows
    assert all(row["raised_when_cut"] == 0 for row in rows if row["case"] != "Pac-Boy, empathic"), rows


def test_who_is_paid_for_balancing_is_not_stuck():
    class Balance(gymnasium.Env):
        observation_space, action_space = gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.elapsed = 0
            return 0, {}

        def step(self, action):
            self.elapsed += 1
            return self.elapsed % 3, 1.0, False, self.elapsed == 100, {}

    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Balance(), name="balance")).learn(500, progress=False)
    assert find_stuck(play(agent, 3)) == []


def test_who_knows_nothing_is_told_to_learn():
    lake = mad.Task.from_gymnasium("FrozenLake-v1", is_slippery=False)
    agent = mad.MultiAdvisor(lake, seed=0)
    agent.observe(0, 0, 0.5, 0, terminated=False)  # all that it knows: to the left is the wall, and somebody paid once
    (one,) = find_stuck(play(agent, 1))
    assert (one.kind, one.since, one.where) == ("stands still", 0, "cell 0")
    assert "raise gamma" in one.advice


# ---- one step explained ----------------------------------------------------------------------------------------------
def test_why_stuck_is_known_where_the_environment_shows_its_table():
    lake = mad.Task.from_gymnasium("FrozenLake-v1", is_slippery=False)
    agent = mad.MultiAdvisor(lake, gamma=0.95, epsilon=0.4).learn(20_000, progress=False)
    assert agent.explain(0).stuck is False
    lost = mad.MultiAdvisor(lake)
    lost.observe(0, 0, 0.5, 0, terminated=False)
    assert lost.explain(0).stuck is True
    assert "earns nothing more and never ends" in str(lost.explain(0))
    assert lost.explain(14).stuck is False  # whatever it does there, it may get to the goal
    cliff = mad.Task.from_gymnasium("CliffWalking-v1", max_episode_steps=300)  # every step costs: nobody earns
    walker = mad.MultiAdvisor(cliff, gamma=0.99).learn(20_000, progress=False)
    assert walker.explain(36).stuck is False


def test_why_stuck_is_known_of_the_steps_of_a_trace():
    agent = trained(planted("goes to and fro", FIRST).task)
    trace = record(agent, 3)
    (first, *_) = find_stuck(play(agent, 3))
    assert explain_step(agent, trace, 0, first.since).stuck is True
    assert explain_step(agent, trace, 0, 40).stuck is True
    assert first.since == 0 or explain_step(agent, trace, 0, first.since - 1).stuck is None
    free = trained(planted("goes to and fro", FIRST).task, "empathic")
    assert explain_step(free, record(free, 1), 0, 0).stuck is False
    assert explain_step(agent, record(agent, 1, epsilon=0.1), 0, 0).stuck is None


class Slope(gymnasium.Env):
    """Each step costs as much as there is still to climb; on the top it costs next to nothing, for ever."""

    observation_space, action_space = gymnasium.spaces.Discrete(12), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.elapsed = 0, 0
        return self.cell, {}

    def step(self, action):
        self.cell, self.elapsed = min(self.cell + int(action), 11), self.elapsed + 1
        return self.cell, self.cell - 11.1, False, self.elapsed == 60, {}


def test_who_stays_where_it_costs_least_is_not_stuck():
    task = mad.Task.from_gymnasium(Slope(), name="slope")
    top = mad.MultiAdvisor(task, gamma=0.9, epsilon=0.5, alpha=0.5, seed=0).learn(20_000, progress=False)
    episodes = play(top, 1, [0])
    assert episodes.positions[-1] == 11
    assert find_stuck(episodes) == []
