"""Continuous actions: what a critic for each advisor costs in return, whether its values hold, and other weights.

A run is an environment, a kind of learner and a list of seeds. The kinds are the critics of this package (`one`,
`shared`, `separate`), SBX's soft actor-critic (`sbx`), and `reweight`, which changes the weights on the way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.envs.registry import make
from multiadvisor.envs.step import one_episode
from multiadvisor.errors import BadInput
from multiadvisor.learners.protocol import push_shares
from multiadvisor.learners.sac.sac_settings import SAC
from multiadvisor.runs.jobs import Tell, kind
from multiadvisor.settings import Settings
from multiadvisor.task import REMAINDER, Advisor, Task, Transition

_CALIBRATED = 4  # episodes
_LOOKED = 25  # every so many steps of an episode, who pushes the action


@dataclass(frozen=True)
class Run:
    """One run; its seeds learn in one program."""

    environment: str
    kind: str
    seeds: tuple[int, ...]
    steps: int
    evaluations: int = 10
    episodes: int = 5
    at_once: int = 8
    """Updates in a row, after as many transitions."""
    units: int = 256
    batch: int = 256
    starts: int = 5_000
    gamma: float = 0.99


# ---- the terms of each environment's reward --------------------------------------------------------------------------
def _main_engine(step: Transition) -> float:
    push = float(step.action[0])
    return 0.0 if step.terminated or push <= 0 else -0.3 * (0.5 + 0.5 * min(push, 1.0))


def _side_engine(step: Transition) -> float:
    push = abs(float(step.action[1]))
    return 0.0 if step.terminated or push <= 0.5 else -0.03 * min(push, 1.0)


TERMS = {
    "LunarLanderContinuous-v3": (
        Advisor("flight", reward=REMAINDER),
        Advisor("landing", reward=lambda step: float(step.reward) if step.terminated else 0.0),
        Advisor("main engine", reward=_main_engine),
        Advisor("side engine", reward=_side_engine),
    ),
    "Pendulum-v1": (
        Advisor("upright", reward=lambda step: -(float(np.arctan2(*step.observation[1::-1])) ** 2)),
        Advisor("slow", reward=lambda step: -0.1 * float(step.observation[2]) ** 2),
        Advisor("torque", reward=REMAINDER),
    ),
}
"""Of environments that put no terms into `info`."""


NESTED = {"racetrack-v0": "info:rewards.*"}
"""Of environments that keep them in a dictionary of their own, raw: what these do not add up to is the rest."""
OPTIONS: dict[str, dict[str, Any]] = {"racetrack-v0": {"config": {"duration": 60}}}  # 300 steps


def environment_of(name: str) -> Any:
    """One episode of an environment."""
    import gymnasium

    with warnings.catch_warnings():  # Box2D's own, which it does not outlive as an error
        warnings.simplefilter("ignore")
        if name in NESTED:
            import_module("highway_env")
        return gymnasium.make(name, **OPTIONS.get(name, {}))


def missing(name: str) -> bool:
    """Whether the environment cannot be made here."""
    try:
        environment_of(name).close()
    except Exception:  # whatever a missing engine raises
        return True
    return False


def task_of(environment: str) -> Task:
    """The environment with an advisor for each term of its reward."""
    if environment in TERMS:
        return Task.from_gymnasium(environment_of(environment), list(TERMS[environment]))
    if environment in NESTED:
        return Task.from_gymnasium(environment_of(environment), NESTED[environment], remainder=True)
    return make(f"{environment}", advisors="info:reward_*")


# ---- runs ------------------------------------------------------------------------------------------------------------
def _learner(run: Run, task: Task, critics: str) -> Any:
    from multiadvisor.learners.sac.sac_learner import ContinuousLearner

    own = SAC(
        critics=critics,
        hidden=(run.units,) * 2,
        batch_size=run.batch,
        updates_at_once=run.at_once,
        buffer_size=run.steps + _AFTER,
        learning_starts=run.starts,
    )
    return ContinuousLearner(task, Settings(gamma=run.gamma, learner=own), seeds=run.seeds)


def _scores(learner: Any, episodes: int, look: int, weights: np.ndarray) -> list[float]:
    """The mean return of episodes without noise, for each seed."""
    return [float((played.returns @ weights).mean()) for played in learner.evaluate_all(episodes, look)]


def _pushes(learner: Any, run: int) -> dict[str, float]:
    """Each advisor's mean share of the push, and how much is left of it, along an episode without noise."""
    from multiadvisor.envs.rollout import EvaluationEpisodes, rollout

    source = EvaluationEpisodes(learner.task, learner.seeds[run], 0)
    states = [step.state for step in rollout(source, 0, lambda state, _: learner.choose(state, run))]
    shares, left = [], []
    for state in states[::_LOOKED]:
        decision = learner.judge(state, learner.choose(state, run)[None], run)
        one, rest = push_shares(decision.slopes)
        shares.append(one)
        left.append(rest)
    found = dict(zip(learner.task.names, np.mean(shares, axis=0).tolist(), strict=True))
    return {**found, "left of all pushing": float(np.mean(left))}


Halted = Callable[[], bool]
"""Whether a run should end after the evaluation it has just made."""


def never() -> bool:
    """Runs come to their end."""
    return False


def ours(run: Run, halted: Halted = never) -> Iterator[dict[str, Any]]:
    """The results so far, after each evaluation; at the end, or where it is halted, calibration and influence too."""
    from studies.critic_calibration import calibrate

    task = task_of(run.environment)
    learner, looks = _learner(run, task, run.kind), []
    for look in range(run.evaluations):
        learner.run((look + 1) * run.steps // run.evaluations - learner.steps)
        looks.append(_scores(learner, run.episodes, look, task.weights))
        yield {"steps": learner.steps, "returns": np.array(looks).T.tolist()}
        if halted():
            break
    found = {"steps": learner.steps, "returns": np.array(looks).T.tolist()}
    if run.kind != "one":
        with suppress(BadInput):  # episodes too short to look ahead
            found["calibration"] = [
                {name: one._asdict() for name, one in calibrate(learner, _CALIBRATED, run=k).items()}
                for k in range(len(run.seeds))
            ]
        found["influence"] = [_pushes(learner, k) for k in range(len(run.seeds))]
    yield found


def sbx(run: Run, halted: Halted = never) -> Iterator[dict[str, Any]]:
    """SBX's soft actor-critic with the same figures; the seeds one after the other."""
    from sbx import SAC

    looks: list[list[float]] = []
    for seed in run.seeds:
        model = SAC(
            "MlpPolicy", environment_of(run.environment), learning_rate=3e-4, buffer_size=max(run.steps, 1_000),
            learning_starts=run.starts, batch_size=run.batch, tau=0.005, gamma=run.gamma, train_freq=run.at_once,
            gradient_steps=run.at_once, policy_kwargs={"net_arch": [run.units] * 2}, seed=seed, verbose=0,
        )  # fmt: skip
        env = environment_of(run.environment)
        looks.append([])
        for look in range(run.evaluations):
            model.learn((look + 1) * run.steps // run.evaluations - model.num_timesteps, reset_num_timesteps=look == 0)
            looks[-1].append(peer_score(model, env, 1_000_000 + 1_000 * look, run.episodes))
            yield {"steps": int(model.num_timesteps), "returns": looks}
            if halted():
                return


def peer_score(model: Any, env: Any, first: int, episodes: int) -> float:
    """The mean return of a peer's greedy episodes with the seeds `first` and on."""

    def greedy(observation: Any) -> Any:
        action = model.predict(observation, deterministic=True)[0]
        return action if np.ndim(action) else int(action)

    return float(
        np.mean([sum(float(step.reward) for step in one_episode(env, first + k, greedy)) for k in range(episodes)])
    )


_HEAVIER, _AFTER = 10.0, 20_000  # the control cost counts so many times more, and so many transitions follow


def reweight(run: Run, halted: Halted = never) -> Iterator[dict[str, Any]]:
    """After `steps` transitions the control cost counts ten times: three ways to go on, and from scratch beside them.

    Every way is seen by the new weights: the policy as it was, the critic of the actor kept, it begun anew from the
    advisors' values, and a learner that had the new weights from the first transition on.
    """
    task = task_of(run.environment)
    heavier = task.with_weights(ctrl=_HEAVIER)
    before = _learner(run, task, "separate")
    before.run(run.steps)
    saved = before.tensors()
    found: dict[str, Any] = {"steps": before.steps}
    found["policy as it was"] = _scores(before, run.episodes, 0, heavier.weights)
    yield found
    ways: dict[str, Callable[[], Any]] = {
        "critic kept": lambda: _taken_up(run, task, saved, heavier, False),
        "critic anew": lambda: _taken_up(run, task, saved, heavier, True),
        "from scratch": lambda: _learner(run, heavier, "separate"),
    }
    for name, begin in ways.items():
        learner = begin()
        for after in (_AFTER // 2, _AFTER):
            learner.run(run.steps + after - learner.steps)
            found[f"{name}, after {after}"] = _scores(learner, run.episodes, after, heavier.weights)
            yield found
            if halted():
                return


def _taken_up(run: Run, task: Task, saved: dict[str, Any], heavier: Task, anew: bool) -> Any:
    learner = _learner(run, task, "separate")
    learner.restore(saved)
    learner.reweight(heavier, anew)
    return learner


WAYS: dict[str, Callable[[Run, Halted], Iterator[dict[str, Any]]]] = {
    "one": ours, "shared": ours, "separate": ours, "sbx": sbx, "reweight": reweight,
}  # fmt: skip


def results(run: Run, halted: Halted = never) -> Iterator[dict[str, Any]]:
    """What a run has found so far, again and again, together with what it is."""
    if run.kind not in WAYS:
        raise BadInput(f"there is no kind of run {run.kind!r}: choose one of {', '.join(WAYS)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found in WAYS[run.kind](run, halted):
            yield {**asdict(run), "seeds": list(run.seeds), **found, "of_steps": run.steps}


@kind("continuous", lease=3_600.0)  # an evaluation of a long run is minutes away
def work(config: dict[str, Any], folder: Path | None, tell: Tell) -> dict[str, Any]:
    """A run as a job."""
    run = Run(**{**config, "seeds": tuple(config["seeds"])})
    found: dict[str, Any] = {}
    for found in results(run):
        tell(min(found["steps"] / run.steps, 1.0))
    return found
