"""The deep learner: the same interface as the tabular one, with a network instead of the table.

Several runs, which differ in their seeds alone, may learn in one program: their episodes, memories and networks are
stacked. `MultiAdvisor` uses one; the experiments on a GPU use many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from multiadvisor.core.aggregator import Team, aggregator_of, learned_in, plannings_of
from multiadvisor.core.learned import NETWORK
from multiadvisor.core.plugins import imported
from multiadvisor.core.rng import TRAINING, episode_key, stream_key, training_keys
from multiadvisor.core.validation import Arrays, Shapes, require
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.observation_encoder import encoder_of
from multiadvisor.envs.step import Env, Step
from multiadvisor.envs.vector_env import VectorEnv
from multiadvisor.errors import BadInput, Diverged
from multiadvisor.learners.dqn.backend import jax
from multiadvisor.learners.dqn.dqn_settings import DQN
from multiadvisor.learners.dqn.dqn_update import Rules, make_update
from multiadvisor.learners.dqn.network import Network, NetworkPlan, check_saved, initial, plan_networks
from multiadvisor.learners.dqn.own_output import OwnOutput
from multiadvisor.learners.dqn.replay import FILLED, STEPS, Chooser, Replay, StepBatch, add
from multiadvisor.learners.dqn.split import split_task, with_own
from multiadvisor.learners.network_learner import (
    ALWAYS,
    NetworkLearner,
    Player,
    play_all,
)
from multiadvisor.learners.protocol import Advice, EpisodeReturns, not_finite
from multiadvisor.settings import Settings, whole_number
from multiadvisor.task import Advisor, Task

_FOR_TABLES = {
    "taken": "the action taken next", "counts": "how often the aggregator acted so",
    "target": "in which of its numbered local states an advisor was",
}  # fmt: skip
Adviser = Callable[[np.ndarray], np.ndarray]  # observations [S, B, F] -> advice [S, B, n, A]
_SMALL = 100_000  # parameters up to which acting in NumPy beats a compiled call


@jax.jit
def _forward(network: Network, observation: Any) -> Any:
    return network(observation)


class DeepLearner(NetworkLearner):
    """Learns with a network; S = len(seeds) runs side by side, all of them alike but for the seed."""

    own: DQN

    def __init__(
        self, task: Task, settings: Settings, saved: Shapes | None = None, seeds: Sequence[int] | None = None
    ) -> None:
        """`saved`: of what shape the arrays are that will be restored, so that no memory is asked for others."""
        deep = settings.learner_settings
        assert isinstance(deep, DQN)
        super().__init__(task, settings, deep, seeds)
        self.split = split_task(task, settings.gamma, deep.split)
        self._own_output: OwnOutput | None = None
        for learned in learned_in(settings.aggregation):
            if learned.network:
                self._own_output = imported(learned.network)
                self.split = with_own(self.split, task, settings.gamma, learned, self._own_output.weight)
        self._activity = deep.split == "advisors" and (
            any(advisor.active is not None for advisor in task.advisors) if task.world is None else True
        )
        if saved is not None and (task.adapter is None or not task.adapter.vector):
            episodes = len(self.seeds) * deep.n_envs
            require(saved.get("replay replay_clock") == (episodes, 3), "replay replay_clock")
        self._score_weights = task.weights
        self.encoder = encoder_of(task, bool(deep.convolutions))
        self.env = self._env()
        self.episodes_each = len(self.source_keys) // len(self.seeds)
        self.plan = self._network_plan()
        rules = self._rules()
        self.aggregator = rules.aggregator
        self._choose = Chooser(rules.aggregator, self.split.weights, len(task.actions))
        if saved is not None:
            check_saved(self.plan, len(self.seeds), saved)
        start, self._update = make_update(deep, rules)
        self.state = start(initial(self.plan, self.seeds))
        self._loss: np.ndarray | None = None  # [n] of the last updates of the first run
        run_keys = np.array([stream_key(seed, TRAINING, 1 << 32) for seed in self.seeds], np.uint64)
        self.memory = Replay(
            self.source_keys, run_keys, deep.buffer_size, self.encoder.shape, self.encoder.dtype, len(self.split.names),
            self._activity,
        )  # fmt: skip
        self.times, self.tally = self.memory.clock[:, STEPS], self.memory.tally
        parameters = sum(leaf.size for leaf in jax.tree.leaves(self.state.network)) // len(self.seeds)
        self._numpy = jax.default_backend() == "cpu" and parameters <= _SMALL and not deep.convolutions
        self._see()

    def _rules(self) -> Rules:
        """How the network's advisors plan and are combined; those that stand for several follow the settings alone."""
        task, settings = self.task, self.settings
        if any(advisor.alpha is not None for advisor in task.advisors):
            raise BadInput("a network has one learning rate for all its advisors: leave their alphas out")
        if any(advisor.mapping is not None for advisor in task.advisors):
            raise BadInput("mappings are for tables: leave them out of the advisors of a network")
        advisors = self.split.advisors
        if self.split.merge is not None:  # each of them is a group
            advisors = tuple(replace(advisor, group=advisor.name) for advisor in advisors)
        team = Team(task.name, advisors)
        plannings = plannings_of(team, settings.planning)
        aggregator = aggregator_of(team, settings.aggregation, NETWORK)
        for planning in plannings:
            for need in planning.needs:
                if need in _FOR_TABLES:
                    raise BadInput(f"planning {planning.name!r} is for tables: replayed steps lack {_FOR_TABLES[need]}")
        return Rules(plannings, aggregator, tuple(self.split.weights.tolist()), settings.epsilon, self._own_output)

    def _network_plan(self) -> NetworkPlan:
        """What each advisor sees, and with whom it shares a network."""
        own, encoder, masks = self.own, self.encoder, np.array(self.encoder.masks)  # [n, F]
        views, shares = [], []
        for name, part in zip(self.split.names, self.split.members, strict=True):
            if part:
                first = self.task.advisors[part[0]]
                views.append(tuple(masks[list(part)].max(axis=0).tolist()))
                shares.append({"shared": "all", "advisor": name, "group": first.group or first.name}[own.torso])
            else:  # the aggregator's own sees everything; it learns beside the advisors, and disturbs none of them
                views.append((1,) * masks.shape[1])
                shares.append("")
        return plan_networks(
            encoder.shape, encoder.scale, views, shares, len(self.task.actions), own.convolutions, own.strides,
            own.hidden,
        )  # fmt: skip

    def _env(self) -> Env:
        task, deep = self.task, self.own
        world = task.world
        if any(advisor.advises is not None for advisor in task.advisors) or (world and (world.advises or world.pseudo)):
            raise BadInput(
                f"in task {task.name!r} advisors fall silent, or learn from pseudo-rewards, which a network does not "
                "know of: learn with tables"
            )
        self.source_keys = training_keys(self.seeds, deep.n_envs)
        if world is not None:
            return CompiledEnv(task, self.source_keys, self.encoder, self._activity)
        env = self._python_env()
        if isinstance(env, VectorEnv):
            self.source_keys = training_keys(self.seeds, env.env.num_envs)
        return env

    # ---- what was learned --------------------------------------------------------------------------------------------
    @property
    def advisors(self) -> tuple[Advisor, ...]:
        """The network's advisors: the task's, or its groups, or one; and the aggregator's own, where it has one."""
        return self.split.advisors

    def _see(self) -> None:
        """Take a copy of the network for acting: the original's memory is given away at the next update."""
        self.network = jax.tree.map(np.array, self.state.network) if self._numpy else self.state.network
        self._adviser = self._advising(self.network)

    def _advising(self, network: Network) -> Adviser:
        """How a network is asked."""
        if self._numpy:  # what is not finite is refused with the loss, with the advisor's name
            return np.errstate(all="ignore")(network.__call__)
        return lambda seen: np.array(_forward(network, seen.reshape(*seen.shape[:2], *self.plan.shape)))

    def _advice_in(self, state: Any) -> np.ndarray:
        """[1, n, A] of the first run in one state."""
        seen = np.repeat(self.encoder.convert(state)[None, None], len(self.seeds), axis=0)
        found: np.ndarray = self._adviser(seen)[0]
        return found

    def consult(self, state: Any) -> Advice:
        """The active advisors' advice in one state."""
        advice, names = self._advice_in(state)[0], self.split.names
        keep = np.arange(len(names))
        if self._activity:
            keep = np.flatnonzero(self._active_outputs(self._active_in(state))[0])
        return Advice(
            tuple(names[j] for j in keep), advice[keep].astype(np.float64), self.split.weights[keep], keep
        )  # fmt: skip

    def _active_outputs(self, active: np.ndarray) -> np.ndarray:
        """[N, k] who of the network's advisors is active, where the task's [N, n] are."""
        return self.split.add(active.astype(np.uint8), 1) if self._activity else ALWAYS

    # ---- learning ----------------------------------------------------------------------------------------------------
    def _begin(self) -> None:
        self.memory.begin(self.current, self._active_outputs(self.active))

    def epsilon_now(self) -> float:
        """The probability of a random action in the next step."""
        if self.own.random_start and not self.updates:
            return 1.0
        return self.own.exploring(self.settings.epsilon, self.steps)

    def last_losses(self) -> dict[str, float]:
        """The mean loss of the first run's last updates, by advisor; empty before the first."""
        return {} if self._loss is None else dict(zip(self.split.names, self._loss.tolist(), strict=True))

    def _actions(self) -> np.ndarray:
        advice = self._adviser(self.current.reshape(len(self.seeds), self.episodes_each, -1))
        return self._choose(
            advice, self._active_outputs(self.active), self.source_keys, self.memory.clock, self.epsilon_now()
        )

    def _remember(self, step: Step, before: np.ndarray, arrived: np.ndarray) -> None:
        if self._watching and not self.memory.stands_at(before[0]):
            self.memory.begin(before, self._active_outputs(step.advisors))
        deep, split = self.own, self.split
        limit, sigma = 1.0 if deep.clip_rewards else 0.0, float(self.settings.noise)
        if split.merge is None:
            paid = split.add(step.reward, 0)
            ended = split.add(step.ended.view(np.uint8), 0) | step.terminated[:, None]
        else:
            paid = step.reward @ split.merge
            ended = np.repeat(step.terminated[:, None].astype(np.uint8), paid.shape[1], axis=1)
        now = self._active_outputs(step.next_advisors)
        then = now if arrived is self.current else self._active_outputs(self.active)
        brought = StepBatch(
            step.action, arrived, paid, step.over, ended, step.begun, self.current, now, then, step.reward
        )
        wrong = add(self.memory.rings, self.source_keys, brought, self.env.waits, limit, sigma, self._score_weights)
        if wrong >= 0:
            # the episodes have gone on and the memory has not: what was saved before is better
            raise not_finite(split.names[wrong], Diverged)

    # ---- episodes that somebody else plays ---------------------------------------------------------------------------
    def explore(self, state: Any) -> int:
        """The action that learning would take in one state."""
        active = self._active_outputs(self._active_in(state))
        clock = np.array([[0, 0, self.exploration.step(self.steps)]])
        return int(self._choose(self._advice_in(state), active, self.source_keys[:1], clock, self.epsilon_now())[0])

    def _learn(self) -> None:
        deep = self.own
        count = deep.updates_at_once
        batch = self.memory.batches(self.updates, count, deep.batch_size, self.split.gammas, deep.n_step)
        self.state, loss = self._update(self.state, batch, np.array(deep.rates(self.updates), np.float32))
        self.updates += count
        self._see()
        loss = np.asarray(loss)
        self._loss = loss[0] / count
        if not np.isfinite(loss).all():
            run, advisor = np.argwhere(~np.isfinite(loss))[0]
            raise self._diverged(f"the loss of advisor {self.split.names[advisor]!r}", f"seed {self.seeds[run]}, ")

    # ---- playing without learning ------------------------------------------------------------------------------------
    def evaluate_all(self, episodes: int, seed: int) -> list[EpisodeReturns]:
        """Greedy episodes of every run; those of a compiled world are played side by side."""
        self.prepare()
        return super().evaluate_all(episodes, seed) if self.task.world is None else self._evaluate_world(episodes, seed)

    def _evaluate_world(self, episodes: int, seed: int) -> list[EpisodeReturns]:
        keys = [episode_key(own, seed, episode) for own in self.seeds for episode in range(episodes)]
        env = CompiledEnv(self.task, keys, self.encoder, self._activity)
        player = self._greedy(keys, len(self.seeds), self._adviser)
        env.reset()
        played = play_all(env, lambda: player(env.encode(env.state), env.active))
        return [played.result(slice(run * episodes, (run + 1) * episodes)) for run in range(len(self.seeds))]

    def _player(self, run: int, keys: list[np.uint64]) -> Player:
        return self._greedy(keys, 1, self._advising(jax.tree.map(lambda leaf: leaf[run : run + 1], self.network)))

    def _greedy(self, keys: list[np.uint64], runs: int, adviser: Adviser) -> Player:
        """Greedy actions, step by step, for episodes of so many runs."""
        own_keys, clock = np.array(keys, np.uint64), np.zeros((len(keys), 3), np.int64)

        def act(observation: np.ndarray, active: np.ndarray) -> np.ndarray:
            advice = adviser(observation.reshape(runs, len(keys) // runs, -1))
            actions = self._choose(advice, self._active_outputs(active), own_keys, clock, 0.0)
            clock[:, STEPS] += 1
            return actions

        return act

    # ---- what a checkpoint keeps -------------------------------------------------------------------------------------
    def _counters(self) -> Arrays:
        return self.exploration.tensors(self.steps)

    def _restore_memory(self, replay: Arrays, tensors: Arrays) -> None:
        self.memory.restore(replay, len(self.task.actions), self.env.waits)
        self.exploration.restore(tensors, self.steps)

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave."""
        super().restore(tensors)
        counts = [leaf for leaf in jax.tree.leaves(self.state) if leaf.dtype.kind != "f"]  # of Adam and the target
        require(all((leaf == self.updates).all() for leaf in counts), "updates")


class Cohort:
    """S runs of one task with the same settings, stacked.

    >>> import multiadvisor as mad
    >>> from multiadvisor.learners.dqn.dqn_learner import Cohort
    >>> settings = mad.Settings(learner=mad.DQN(hidden=(8,), learning_starts=32, n_envs=2))
    >>> cohort = Cohort(mad.make("three-fruits"), settings, seeds=(0, 1)).learn(64)
    >>> cohort.steps, len(cohort.evaluate(episodes=2))
    (64, 2)
    """

    def __init__(self, task: Task, settings: Settings, seeds: Sequence[int]) -> None:
        if not isinstance(settings.learner, DQN):
            raise BadInput("a cohort learns with networks: give settings with learner=DQN(...)")
        self.seeds = tuple(whole_number("seed", seed) for seed in seeds)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise BadInput(f"the seeds of a cohort are {list(seeds)}: give each run its own")
        self.task, self.settings = task, settings
        self.learner = DeepLearner(task, settings, seeds=self.seeds)

    @property
    def steps(self) -> int:
        """Transitions that each run has learned from."""
        return self.learner.steps

    def learn(self, steps: int) -> Cohort:
        """Learn from this many transitions more in each run; returns self."""
        self.learner.run(whole_number("steps", steps))
        return self

    def evaluate(self, episodes: int = 80, seed: int = 0) -> list[EpisodeReturns]:
        """Greedy episodes of each run, in the order of the seeds."""
        return self.learner.evaluate_all(whole_number("episodes", episodes, 1), whole_number("seed", seed))

    def settings_of(self, run: int) -> Settings:
        """The settings under which this run could have been made alone."""
        return replace(self.settings, seed=self.seeds[run])

    def tensors_of(self, run: int) -> dict[str, np.ndarray]:
        """One run's part of everything, as a learner of that run alone would give it."""
        each, runs, whole = self.learner.episodes_each, len(self.seeds), self.learner.tensors()
        alone = {"updates": whole.pop("updates")}
        if "episodes trail" in whole:
            ends = np.cumsum([0, *whole["episodes trail_lengths"]])[[run * each, (run + 1) * each]]
            alone["episodes trail"] = whole.pop("episodes trail")[slice(*ends)]
        for name, array in whole.items():
            if name.startswith("network"):
                alone[name] = array[run : run + 1] if len(array) == runs else array
            else:
                alone[name] = array[run * each : (run + 1) * each]
        used = int(alone["replay replay_clock"][:, FILLED].max())  # another run's episodes may have taken more rows
        rows = [name for name in alone if name.startswith("replay ") and not name.startswith("replay replay_")]
        return {**alone, **{name: alone[name][:, :used] for name in rows}}
