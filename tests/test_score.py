"""One score: what a plain loop adds up, every learner does, in training, evaluation, trace, report and calibration."""

from dataclasses import replace
from typing import NamedTuple

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import multiadvisor as mad
from multiadvisor.analysis.calibration import LEFT
from multiadvisor.analysis.episode_report import report
from multiadvisor.analysis.episodes import record
from multiadvisor.analysis.stuck import ends_of_parts
from multiadvisor.learners.dqn.dqn_settings import DQN
from multiadvisor.learners.gvf.gvf_spec import Aims, Goals
from multiadvisor.learners.sac.sac_settings import SAC
from multiadvisor.task import Transition
from refusal import refused

STATES, STEPS, GAMMA = 6, 60, 0.9


class Ring(gymnasium.Env):
    """Six states in a ring; whatever is done, the next one follows. Terms in info, for vector environments too."""

    def __init__(self, actions=None, numbers=False):
        self.action_space = spaces.Discrete(2) if actions is None else actions
        self.numbers = numbers
        self.observation_space = spaces.Box(0, STATES, (1,), np.float32) if numbers else spaces.Discrete(STATES)

    def see(self):
        return np.array([self.x], np.float32) if self.numbers else self.x

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.elapsed = 0, 0
        return self.see(), {}

    def step(self, action):
        self.x, self.elapsed = (self.x + 1) % STATES, self.elapsed + 1
        info = {"home": float(self.x == 0), "toll": 1.0 + self.x}
        return self.see(), info["home"], False, self.elapsed == STEPS, info


def at(seen):
    return int(np.ravel(seen)[0])


def advisors(*without):
    """One that is always there, one that comes and goes, one that ends at home, one that falls silent, and all that."""
    near, home = (lambda o: at(o) < 3), (lambda t: at(t.next_observation) == 0)
    all_of_them = [
        mad.Advisor("plain", reward="info:home"), mad.Advisor("near", reward="info:toll", weight=2.0, active=near),
        mad.Advisor("ends", reward="info:home", ended=home),
        mad.Advisor("quiet", reward="info:toll", weight=-0.5, advises=near),
        mad.Advisor("odd", reward="info:toll", gamma=0.5, active=lambda o: at(o) != 1, advises=near, ended=home),
    ]  # fmt: skip
    return [replace(advisor, **dict.fromkeys(without)) for advisor in all_of_them]


class Plain(NamedTuple):
    """What a plain loop finds in an episode."""

    returns: np.ndarray  # [n]
    active: np.ndarray  # [T, n]
    asked: np.ndarray  # [T, n]
    over: np.ndarray  # [T, n] whose part this step ended
    paid: np.ndarray  # [T, n]
    states: list


def plain_loop(env, advisors):
    """An episode, read with nothing but the functions of the advisors: who is not active is not paid."""
    seen, _ = env.reset()
    active, asked, over, paid, states, cut = [], [], [], [], [], False
    while not cut:
        after, reward, ends, cut, info = env.step(env.action_space.sample())
        step = Transition(seen, 0, reward, after, ends, cut, info)
        active.append([f.active is None or f.active(seen) for f in advisors])
        asked.append([a and (f.advises is None or f.advises(seen)) for a, f in zip(active[-1], advisors, strict=True)])
        stays = [(f.active is None or f.active(after)) and not (f.ended and f.ended(step)) for f in advisors]
        over.append(~np.array(stays))
        amounts = [info[f.reward.removeprefix("info:")] for f in advisors]
        paid.append(np.where(active[-1], amounts, 0.0))
        states.append(seen)
        seen = after
    return Plain(np.sum(paid, axis=0), *map(np.array, (active, asked, over, paid)), states)


def followed(episode, j, gamma):
    """The steps that count, with the return that followed each: up to the end of this part, or nearly to the cut."""
    for step in np.flatnonzero(episode.asked[:, j]):
        total, factor, known = 0.0, 1.0, False
        for later in range(step, len(episode.paid)):
            total += factor * episode.paid[later, j]
            factor *= gamma
            if episode.over[later, j]:
                known = True
                break
        if known or factor <= LEFT:
            yield step, total


# ---- a compiled world that is the same ring --------------------------------------------------------------------------
class Constants(NamedTuple):
    states: int


@mad.compiled
def reset(world, x, key):
    x[0] = 0


@mad.compiled
def begin(world, x, advisors):
    m = 0
    for j in range(5):
        if (j != 1 or x[0] < 3) and (j != 4 or x[0] != 1):
            advisors[m] = j
            m += 1
    return m


@mad.compiled
def local_states(world, x, advisors, m, local):
    for i in range(m):
        local[i] = x[0]


@mad.compiled
def advises(world, x, advisors, m, voice):
    for i in range(m):
        if advisors[i] >= 3 and x[0] >= 3:
            voice[i] = 0.0


@mad.compiled
def step(world, x, action, key, advisors, m, reward, ended):
    x[0] = (x[0] + 1) % world.states
    for i in range(m):
        j = advisors[i]
        if j == 0 or j == 2:
            reward[i] = 1.0 if x[0] == 0 else 0.0
        else:
            reward[i] = 1.0 + x[0]
        if (j == 1 and x[0] >= 3) or (j == 4 and x[0] == 1) or (j in (2, 4) and x[0] == 0):
            ended[i] = 1
    return False


def compiled_ring(*without):
    world = mad.World(
        Constants(STATES), 1, reset, begin, local_states, step, sizes=(STATES,), joins=True,
        advises=None if "advises" in without else advises,
    )  # fmt: skip
    own = [replace(f, reward=None, active=None, advises=None, ended=None, state="x", states=STATES)
           for f in advisors(*without)]  # fmt: skip
    return mad.Task("ring", ("a", "b"), tuple(own), world=world, limit=STEPS, endless=True)


# ---- every learner ---------------------------------------------------------------------------------------------------
def network(**how):
    return {"learner": DQN(hidden=(8,), batch_size=8, learning_starts=16, buffer_size=200, **how)}


def actor(critics, **how):
    own = SAC(critics=critics, hidden=(8,), batch_size=8, learning_starts=16, buffer_size=200, **how)
    return {"learner": own}


def ring(*without, box=False):
    return mad.Task.from_gymnasium(
        Ring(spaces.Box(-1, 1, (1,), np.float32), True) if box else Ring(), advisors(*without), name="ring"
    )


def vector(*without, box=False):
    made = (lambda: Ring(spaces.Box(-1, 1, (1,), np.float32), True)) if box else Ring
    return mad.Task.from_gymnasium(gymnasium.vector.SyncVectorEnv([made] * 3), advisors(*without), name="ring")


gymnasium.register("tests/Ring-v0", Ring)


def several(*without):
    return mad.Task.from_gymnasium("tests/Ring-v0", advisors(*without))


SILENT = ("advises",)  # what networks do not know of
SUMMED = ("advises", "ended", "gamma")  # and what no critic of a sum can represent
LEARNERS = {
    "tables": (ring, (), {}),
    "tables, agnostic": (ring, (), {"planning": "agnostic"}),
    "compiled": (compiled_ring, (), {}),
    "linear": (compiled_ring, ("advises", "gamma"), {"learner": "linear"}),
    "network": (ring, SILENT, network()),
    "network, n steps": (ring, SILENT, network(n_step=3)),
    "network of a compiled world": (compiled_ring, SILENT, network()),
    "network, several episodes": (several, SILENT, network(n_envs=7)),
    "network of groups": (ring, SILENT, network(split="groups")),
    "network of the sum": (ring, SILENT, network(split="none")),
    "network, vector": (vector, ("advises", "ended"), network()),
    "actor": (lambda *w: ring(*w, box=True), SILENT, actor("shared")),
    "actor, beside": (lambda *w: ring(*w, box=True), SUMMED, actor("separate")),
    "actor, one": (lambda *w: ring(*w, box=True), SUMMED, actor("one")),
    "actor, vector": (lambda *w: vector(*w, box=True), SUMMED, actor("separate")),
}  # fmt: skip


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[pytest.mark.slow] if "," in name or "network of" in name else []) for name in LEARNERS
    ],
)
def played(request):
    """An agent after four episodes, and the episode that a plain loop has played."""
    make, without, settings = LEARNERS[request.param]
    agent = mad.MultiAdvisor(make(*without), gamma=GAMMA, **settings)
    steps = 4 * STEPS * getattr(agent._learner, "episodes_each", 1)
    return agent.learn(steps), plain_loop(Ring(), advisors(*without))


def test_score_and_returns_are_those_of_a_plain_loop(played):
    agent, plain = played
    score = plain.returns @ agent.task.weights
    seen = agent.evaluate(4)
    assert np.allclose(seen.played.returns, plain.returns)
    assert np.allclose(seen.played.score, score)
    learner = agent._learner
    assert learner.episodes >= 4
    assert learner.score_sum == pytest.approx(learner.episodes * score)  # while learning
    if agent.task.adapter is not None and agent.task.adapter.vector:
        return
    trace, said = record(agent, 2), report(agent, 2)
    assert np.allclose(trace.played.returns, plain.returns)
    assert np.allclose(trace.played.score, score)
    assert np.allclose(said.episodes.played.returns, plain.returns)
    assert np.allclose(said.episodes.played.score, score)
    assert np.allclose(np.add.reduceat(said.episodes.gain, said.episodes.first[:-1]), score)


def test_calibration_is_that_of_a_plain_loop(played):
    agent, plain = played
    if agent.task.adapter is not None and agent.task.adapter.vector:
        refused("vector environment", report, agent, 2)
        return
    said, names = report(agent, 2), agent.task.names
    told = [known for name, known in zip(said.episodes.names, said.calibration, strict=True) if name in names]
    settings = agent.settings
    if settings.learner == mad.Linear() or getattr(settings.learner, "critics", "") == "one":
        assert not any(said.calibration)
        return
    if getattr(settings.learner, "split", "advisors") != "advisors":  # all for one: the weighted sum, to the end
        own = plain.paid * agent.task.weights
        paid = own.sum(axis=1, keepdims=True) if settings.learner.split == "none" else own
        there = np.ones_like(paid, bool)
        plain, told = plain._replace(paid=paid, asked=there, over=~there), said.calibration
    else:
        assert said.influence.spoke[: len(told)].tolist() == (2 * plain.asked.sum(axis=0)).tolist()
    assert len(told) == plain.paid.shape[1]
    gammas = agent.task.gammas(GAMMA) if len(told) == agent.task.n else [GAMMA]
    for j, known in enumerate(told):
        steps, came = zip(*followed(plain, j, gammas[j]), strict=True)
        values = [value_of(agent, plain.states[step], said.episodes.names[j]) for step in steps]
        assert known.steps == 2 * len(steps)
        assert known.followed == pytest.approx(np.mean(came), rel=1e-5)
        assert known.predicted == pytest.approx(np.mean(values), rel=1e-4, abs=1e-5)
        assert known.bias == pytest.approx(np.mean(values) - np.mean(came), rel=1e-4, abs=1e-5)


def value_of(agent, seen, name):
    """What an advisor expects of what is done."""
    state = np.array([seen]) if agent.task.world is not None or agent.task.continuous else seen
    names, values = agent.advice(state)
    return values[names.index(name), 0 if agent.task.continuous else agent.task.numbered(agent.act(state))]


# ---- what was wrong --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("without", [("active", "advises"), ("active", "ended"), ("advises",), ()])
def test_exact_values_have_no_bias(without):
    """Returns end with the advisor's part and go on where it is silent."""
    agent = mad.MultiAdvisor(ring(*without), gamma=GAMMA, alpha=1.0).learn(60 * STEPS)
    assert np.allclose(agent.values("ends")[0].max(), 0.9**5 if "ended" not in without else 0.9**5 / (1 - 0.9**6))
    for name, known in zip(agent.task.names, report(agent, 2).calibration, strict=True):
        assert (name, known.bias) == (name, pytest.approx(0.0, abs=0.02 * abs(known.followed)))


@pytest.mark.parametrize(
    ("make", "settings"),
    [(ring, network()), (lambda: ring(box=True), actor("shared")), (compiled_ring, {"learner": "linear"})],
)
def test_who_does_not_know_of_silence_says_so(make, settings):
    refused(r"for tables|with tables", mad.MultiAdvisor, make(), **settings)


def test_a_bank_has_the_same_score_and_its_parts_end_at_their_goals():
    """The score is the environment's; who points at nothing has no part, and who has reached its goal has ended."""

    def aim(seen, look):
        return Aims(np.array([0, 3 if seen < 5 else -1]), np.ones(2))

    def reached(before, after, reward):
        return np.array([after == 0, after == 3 and before < 5], float)

    goals = Goals(STATES, np.arange(STATES), int, aim, reached, sweeps=50)
    task = replace(mad.Task.from_gymnasium(Ring(), [mad.Advisor("home"), mad.Advisor("far", weight=2.0)]), goals=goals)
    agent = mad.MultiAdvisor(task, planning="egocentric", gamma=GAMMA, epsilon=0.5).learn(4 * STEPS)
    seen, trace, said = agent.evaluate(2).played, record(agent, 2).played, report(agent, 2)
    for played in (seen, trace, said.episodes.played):
        assert played.score.tolist() == [STEPS / STATES] * 2
        assert played.returns.tolist() == [[STEPS / STATES] * 2] * 2
    assert (agent.episodes, agent._learner.score_sum) == (4, 4 * STEPS / STATES)
    assert said.episodes.parts.active[:6, 1].tolist() == [True] * 5 + [False]
    assert np.flatnonzero(said.episodes.parts.ended[:12, 1]).tolist() == [2, 4, 8, 10]
    came = [0.9**2, 0.9, 1.0, 0.0, 0.0]  # from behind its goal it has no part before it is there again
    assert said.calibration[1].followed == pytest.approx(np.mean(came))
    assert said.calibration[0].bias == pytest.approx(0.0, abs=1e-6)


@pytest.mark.slow
def test_calibration_with_and_without_noise_add_up_the_same():
    """What is done changes nothing here, so that the same returns follow; values are of other actions."""
    from studies.critic_calibration import calibrate

    agent = mad.MultiAdvisor(ring(*SILENT, box=True), gamma=GAMMA, **actor("shared")).learn(STEPS)
    said, fits = report(agent, 2), calibrate(agent._learner, 2)
    assert "its noise included (these episodes were played without it)" in str(said)
    sizes = []
    for j, (name, fit) in enumerate(fits.items()):
        known, plain = said.calibration[j], plain_loop(Ring(), advisors(*SILENT))
        came = [total for _, total in followed(plain, j, agent.task.gammas(GAMMA)[j])]
        assert (name, fit.followed) == (known and agent.task.names[j], pytest.approx(known.followed))
        assert fit.bias * np.std(came) == pytest.approx(fit.predicted - fit.followed)
        sizes.append(np.mean(np.abs(came)))
    assert [fit.share for fit in fits.values()] == pytest.approx(np.array(sizes) / np.sum(sizes))
    same, noisy = agent._learner.actor, [fit.predicted for fit in fits.values()]
    weight, bias = same[-1]
    half = bias.shape[-1] // 2
    agent._learner.actor = (*same[:-1], (weight * np.repeat([1, 0], half)[:, None], bias - np.repeat([0, 50], half)))
    still = [fit.predicted for fit in calibrate(agent._learner, 2).values()]  # next to no noise is left
    assert still == pytest.approx([known.predicted for known in said.calibration[: len(still)]], rel=0.01)
    assert still != pytest.approx(noisy, rel=1e-4)


def test_who_comes_and_goes_does_not_hide_that_an_episode_is_stuck():
    """An advisor with a part in every other state of a circle has not done anything for good when the episode is
    cut."""
    there = np.arange(40) % 2 == 0
    assert not ends_of_parts(np.stack([there, np.ones(40, bool)], axis=1)).any()
