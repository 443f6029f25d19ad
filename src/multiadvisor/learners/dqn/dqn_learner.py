"""The deep learner: the same interface as the tabular one, with a network instead of the table.

Several runs, which differ in their seeds alone, may learn in one program: their episodes, memories and networks are
stacked. `MultiAdvisor` uses one; the experiments on a GPU use many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from multiadvisor.core.aggregations import CORRECTION
from multiadvisor.core.aggregator import Team, aggregator_of, plannings_of
from multiadvisor.core.rng import EVALUATION, TRAINING, episode_key, stream_key, training_keys
from multiadvisor.core.validation import Arrays, Shapes, require, whole
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.observation_encoder import encoder_of
from multiadvisor.envs.python_env import PythonEnv
from multiadvisor.envs.step import Env, Step
from multiadvisor.envs.vector_env import VectorEnv
from multiadvisor.errors import BadInput, Diverged
from multiadvisor.learners.dqn.backend import jax
from multiadvisor.learners.dqn.dqn_settings import DQN
from multiadvisor.learners.dqn.dqn_update import Rules, make_update
from multiadvisor.learners.dqn.locked_rollout import LockedRollout, play_all
from multiadvisor.learners.dqn.network import Network, check_saved, initial, plain, plan_networks
from multiadvisor.learners.dqn.network_state import kept, leaves_of, networks_of, part_of
from multiadvisor.learners.dqn.replay import DONE, FILLED, SCORE_SUM, STEPS, Chooser, Replay, StepBatch, add
from multiadvisor.learners.dqn.split import advisors_of, split_task, with_correction
from multiadvisor.learners.finite_choice import FiniteChoice
from multiadvisor.learners.protocol import Advice, EpisodeReturns, Exploration, not_finite, refuse_unobservable
from multiadvisor.settings import Settings
from multiadvisor.task import Advisor, Task, Transition

_MOST_UPDATES = (1 << 31) - 1  # they are counted in 32 bits
_FOR_TABLES = {
    "taken": "the action taken next", "counts": "how often the aggregator acted so",
    "target": "in which of its numbered local states an advisor was",
}  # fmt: skip
_ALWAYS = np.zeros((0, 0), np.uint8)  # instead of activity, where every advisor always has a say
Adviser = Callable[[np.ndarray], np.ndarray]  # observations [S, B, F] -> advice [S, B, n, A]
_SMALL = 100_000  # parameters up to which acting in NumPy beats a compiled call


@jax.jit
def _forward(network: Network, observation: Any) -> Any:
    return network(observation)


def make_dqn(task: Task, settings: Settings, saved: Shapes | None) -> DeepLearner:
    """The learner of one run."""
    return DeepLearner(task, settings, saved=saved)


class DeepLearner(LockedRollout, FiniteChoice):
    """Learns with a network; S = len(seeds) runs side by side, all of them alike but for the seed."""

    def __init__(
        self, task: Task, settings: Settings, seeds: Sequence[int] | None = None, saved: Shapes | None = None
    ) -> None:
        """`saved`: of what shape the arrays are that will be restored, so that no memory is asked for others."""
        deep = settings.learner_settings
        assert isinstance(deep, DQN)
        self.task, self.settings, self.deep = task, settings, deep
        self.seeds = tuple(seeds) if seeds is not None else (settings.seed,)
        self.split = split_task(task, settings.gamma, deep.split)
        if settings.aggregation == CORRECTION:
            self.split = with_correction(self.split, task, settings.gamma)
        self._activity = deep.split == "advisors" and (
            any(advisor.active is not None for advisor in task.advisors) if task.world is None else True
        )
        if saved is not None and (task.adapter is None or not task.adapter.vector):
            episodes = len(self.seeds) * deep.n_envs
            require(saved.get("replay replay_clock") == (episodes, 3), "replay replay_clock")
        self.encoder = encoder_of(task, bool(deep.convolutions))
        self.env = self._env()
        episodes = len(self.source_keys) // len(self.seeds)
        self.episodes_each = episodes
        self._score_weights = task.weights
        encoder = self.encoder
        views = [self._view(encoder.masks, part) for part in self.split.members]
        shares = {
            "shared": ["all"] * len(views),
            "advisor": list(self.split.names),
            "group": [
                task.advisors[part[0]].group or task.advisors[part[0]].name for part in self.split.members if part
            ],
        }[deep.torso]
        if self.split.correcting:  # it learns beside the advisors, and disturbs none of them
            shares[len(views) - 1 :] = [""]
        self.plan = plan_networks(
            encoder.shape, encoder.scale, views, shares, len(task.actions), deep.convolutions, deep.strides, deep.hidden
        )
        rules = self._rules()
        self.aggregator = rules.aggregator
        self._choose = Chooser(rules.aggregator, self.split.weights, len(task.actions))
        if saved is not None:
            check_saved(self.plan, len(self.seeds), saved)
        start, self._update = make_update(deep, rules)
        self.state = start(initial(self.plan, self.seeds))
        self.updates = 0
        self._loss: np.ndarray | None = None  # [n] of the last updates of the first run
        run_keys = np.array([stream_key(seed, TRAINING, 1 << 32) for seed in self.seeds], np.uint64)
        k = len(self.split.names)
        self.replay = Replay(
            self.source_keys, run_keys, deep.buffer_size, encoder.shape, encoder.dtype, k, self._activity
        )  # fmt: skip
        parameters = sum(leaf.size for leaf in jax.tree.leaves(self.state.network)) // len(self.seeds)
        self._numpy = jax.default_backend() == "cpu" and parameters <= _SMALL and not deep.convolutions
        self._see()
        self._opened = False  # whether episodes of its own are going on
        self._watching = False  # whether somebody else plays: the memory holds transitions that were observed
        self.exploration = Exploration()
        self._nothing = np.zeros((len(self.source_keys), 0), np.uint8)

    def _rules(self) -> Rules:
        """How the network's advisors plan and are heard; those that stand for several follow the settings alone."""
        task, settings = self.task, self.settings
        if any(advisor.alpha is not None for advisor in task.advisors):
            raise BadInput("a network has one learning rate for all its advisors: leave their alphas out")
        if any(advisor.mapping is not None for advisor in task.advisors):
            raise BadInput("mappings are for tables: leave them out of the advisors of a network")
        advisors = advisors_of(task, self.split)
        if self.split.merge is not None:  # each of them is a group
            advisors = tuple(replace(advisor, group=advisor.name) for advisor in advisors)
        team = Team(task.name, advisors)
        plannings, aggregator = (
            plannings_of(team, settings.planning),
            aggregator_of(team, settings.aggregation, (CORRECTION,)),
        )
        for planning in plannings:
            for need in planning.needs:
                if need in _FOR_TABLES:
                    raise BadInput(
                        f"planning {planning.name!r} is for tables: a replay buffer of single transitions lacks "
                        f"{_FOR_TABLES[need]}"
                    )
        return Rules(plannings, aggregator, tuple(self.split.weights.tolist()), settings.epsilon, self.split.correcting)

    @staticmethod
    def _view(masks: tuple[tuple[int, ...], ...], part: tuple[int, ...]) -> tuple[int, ...]:
        """What the members see together; the correction, which has none, sees everything."""
        if not part:
            return (1,) * len(masks[0])
        return tuple(int(any(masks[j][f] for j in part)) for f in range(len(masks[0])))

    def _env(self) -> Env:
        task, deep = self.task, self.deep
        world = task.world
        if any(advisor.advises is not None for advisor in task.advisors) or (world and (world.advises or world.pseudo)):
            raise BadInput(
                f"in task {task.name!r} advisors fall silent, or learn from pseudo-rewards, which a network does not "
                "know of: learn with tables"
            )
        self.source_keys = training_keys(self.seeds, deep.n_envs)
        if world is not None:
            return CompiledEnv(task, self.source_keys, self.encoder, self._activity)
        assert task.adapter is not None
        if task.adapter.vector:
            if len(self.seeds) > 1 or deep.n_envs != 1:
                raise BadInput("a vector environment has its own number of episodes and one run: leave envs out")
            self.source_keys = training_keys(self.seeds, task.adapter.env.num_envs)
            return VectorEnv(task, self.seeds[0], self.encoder)
        envs = task.adapter.copies(len(self.seeds) * deep.n_envs)
        seeds = [(seed, episode) for seed in self.seeds for episode in range(deep.n_envs)]
        return PythonEnv(task, envs, seeds, self.encoder)

    # ---- what was learned --------------------------------------------------------------------------------------------
    @property
    def steps(self) -> int:
        """Transitions learned from, in each run."""
        steps = self.replay.clock[:, STEPS]
        return int(steps[0] if self.episodes_each == 1 else steps[: self.episodes_each].sum())

    @property
    def episodes(self) -> int:
        """Episodes played to their end, in the first run."""
        return int(self.replay.tally[: self.episodes_each, DONE].sum())

    @property
    def advisors(self) -> tuple[Advisor, ...]:
        """The network's advisors: the task's, or its groups, or one; and the correction, where it learns one."""
        return advisors_of(self.task, self.split)

    @property
    def score_sum(self) -> float:
        """The scores of those episodes together."""
        return float(self.replay.tally[: self.episodes_each, SCORE_SUM].sum())

    def _see(self) -> None:
        """Take a copy of the network for acting: the original's memory is given away at the next update."""
        self.network = jax.tree.map(np.array, self.state.network) if self._numpy else self.state.network
        self._adviser = self._advising(self.network)

    def _advising(self, network: Network) -> Adviser:
        """How a network is asked."""
        if self._numpy:
            return plain(network)
        return lambda seen: np.array(_forward(network, seen.reshape(*seen.shape[:2], *self.plan.shape)))

    def _advice(self, observation: np.ndarray, adviser: Adviser | None = None) -> np.ndarray:
        """[S, B, F] -> [S, B, n, A]."""
        return (adviser or self._adviser)(observation)

    def consult(self, state: Any) -> Advice:
        """The active advisors' advice in one state."""
        row = self.encoder.convert(state)
        advice = self._advice(np.repeat(row[None, None], len(self.seeds), axis=0))[0, 0]
        keep = np.arange(len(self.split.names))
        if self._activity:
            keep = np.flatnonzero(self._active_in(state)[0])
        names = tuple(self.split.names[j] for j in keep)
        return Advice(names, advice[keep].astype(np.float64), self.split.weights[keep], keep)

    def _active_in(self, state: Any) -> np.ndarray:
        """[1, k] who has a say in one state."""
        return self.split.add(self.env.active_in(state)[None].astype(np.uint8), 1)

    def _active(self, active: np.ndarray, always: np.ndarray) -> np.ndarray:
        """[N, k] who of the network's advisors is active; `always` where everybody is, all the time."""
        return self.split.add(active.astype(np.uint8), 1) if self._activity else always

    # ---- learning ----------------------------------------------------------------------------------------------------
    def _times(self) -> np.ndarray:
        return self.replay.clock[:, STEPS]

    def _begin(self) -> None:
        begin = self.replay.begin_again if self.replay.clock[0, FILLED] else self.replay.open
        begin(self.current, self._active(self.env.active, self._nothing))

    def epsilon_now(self) -> float:
        """The chance of an action at random."""
        return self._epsilon()

    def last_losses(self) -> dict[str, float]:
        """The mean loss of the first run's last updates, by advisor; empty before the first."""
        return {} if self._loss is None else dict(zip(self.split.names, self._loss.tolist(), strict=True))

    def _epsilon(self) -> float:
        if self.deep.random_start and not self.updates:
            return 1.0
        return self.deep.exploring(self.settings.epsilon, self.steps)

    def _run(self, steps: int) -> None:
        runs, until = len(self.seeds), self.steps + steps
        actions = np.zeros(len(self.source_keys), np.int64)
        active = self._active(self.env.active, _ALWAYS)
        while self.steps < until:
            advice = self._advice(self.current.reshape(runs, self.episodes_each, -1))
            self._choose(
                advice.reshape(-1, *advice.shape[2:]), active, self.source_keys, self.replay.clock, self._epsilon(),
                actions,
            )  # fmt: skip
            step, arrived = self._step(actions)
            now_active = self._active(step.next_advisors, self._nothing)
            active = now_active if arrived is self.current else self._active(self.env.active, self._nothing)
            self._remember(step, arrived, self.current, now_active, active)
            active = active if self._activity else _ALWAYS
            self._catch_up()

    def _remember(
        self, step: Step, arrived: np.ndarray, following: np.ndarray, now_active: np.ndarray, then_active: np.ndarray
    ) -> None:
        """Keep a step of every episode, which led to `arrived` [N, F]; `following` [N, F] is what is acted on next.

        Who is active [N, k] in each of the two comes after them.
        """
        deep, split = self.deep, self.split
        limit, sigma = 1.0 if deep.clip_rewards else 0.0, float(self.settings.noise)
        if split.merge is None:
            paid = split.add(step.reward, 0)
            ended = split.add(step.ended.view(np.uint8), 0) | step.terminated[:, None]
        else:
            paid = step.reward @ split.merge
            ended = np.repeat(step.terminated[:, None].astype(np.uint8), paid.shape[1], axis=1)
        brought = StepBatch(
            step.action, arrived, paid, step.over, ended, step.begun, following, now_active, then_active, step.reward
        )
        wrong = add(self.replay.rings, self.source_keys, brought, self.env.waits, limit, sigma, self._score_weights)
        if wrong >= 0:
            # the episodes have gone on and the memory has not: what was saved before is better
            raise Diverged(f"the reward of advisor {split.names[wrong]!r} is not finite: correct its reward function")

    def _catch_up(self) -> None:
        """The updates that are due."""
        deep, now = self.deep, self.steps
        due = (now - deep.learning_starts) // deep.train_freq - self.updates
        while due >= deep.updates_at_once and now >= deep.batch_size:
            self._learn()
            due -= deep.updates_at_once

    # ---- episodes that somebody else plays ---------------------------------------------------------------------------
    def explore(self, state: Any) -> int:
        """The action that learning would take in one state."""
        row = self.encoder.convert(state)
        advice = self._advice(np.repeat(row[None, None], len(self.seeds), axis=0))[0]  # [1, n, A]
        active = self._active_in(state) if self._activity else _ALWAYS
        clock, action = np.array([[0, 0, self.exploration.step(self.steps)]]), np.zeros(1, np.int64)
        self._choose(advice, active, self.source_keys[:1], clock, self._epsilon(), action)
        return int(action[0])

    def observe(self, transition: Transition, following: int | None) -> None:
        """Remember a transition that somebody else played, and learn as after one of its own."""
        refuse_unobservable(self.task)
        if self.deep.n_envs > 1:
            raise BadInput(f"n_envs is {self.deep.n_envs}, and transitions are observed one by one: leave it at 1")
        replay = self.replay
        before, after = (self.encoder.convert(seen)[None] for seen in (transition[0], transition[3]))
        assert isinstance(self.env, PythonEnv)
        step = self.env.read(transition)
        for advisor, paid in zip(self.task.advisors, step.reward[0], strict=True):
            if not np.isfinite(paid):
                raise not_finite(advisor)
        self._watching, self._opened = True, False
        if not replay.stands_at(before[0]):
            active = self._active_in(transition.observation) if self._activity else self._nothing
            (replay.begin_again if replay.clock[0, FILLED] else replay.open)(before, active)
        active = self._active(step.next_advisors, self._nothing)
        self._remember(step, after, after, active, active)
        self._catch_up()

    def _learn(self) -> None:
        deep = self.deep
        count = deep.updates_at_once
        batch = self.replay.batches(self.updates, count, deep.batch_size, self.split.gammas, deep.n_step)
        self.state, loss = self._update(self.state, batch, np.array(deep.rates(self.updates), np.float32))
        self.updates += count
        self._see()
        loss = np.asarray(loss)
        self._loss = loss[0] / count
        if not np.isfinite(loss).all():
            run, advisor = np.argwhere(~np.isfinite(loss))[0]
            raise Diverged(
                f"the loss of advisor {self.split.names[advisor]!r} is no longer finite (seed {self.seeds[run]}, "
                f"{self.steps} steps): lower the learning rate, or look for an observation that is not finite"
            )

    # ---- playing without learning ------------------------------------------------------------------------------------
    def evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        """Greedy episodes of the first run."""
        return self.evaluate_all(episodes, seed)[0]

    def evaluate_all(self, episodes: int, seed: int) -> list[EpisodeReturns]:
        """Greedy episodes of every run."""
        self.prepare()
        if self.task.world is not None:
            return self._evaluate_world(episodes, seed)
        adapter, own = self.task.adapter, self.seeds
        assert adapter is not None
        with adapter.lock as lock:
            lock.user = None
            if adapter.vector:
                env = VectorEnv(self.task, own[0], self.encoder)
                keys = [stream_key(own[0], EVALUATION, (seed << 20) + i) for i in range(adapter.env.num_envs)]
                player = self._player(keys, None)
                return [self._evaluate_vector(env, seed, episodes, lambda: player(env.encode(env.state), env.active))]
            return [self._evaluate_run(run, episodes, seed) for run in range(len(own))]

    def _evaluate_run(self, run: int, episodes: int, seed: int) -> EpisodeReturns:
        own = self.seeds[run]
        adviser = self._advising(jax.tree.map(lambda leaf: leaf[run : run + 1], self.network))
        player = self._player([stream_key(own, EVALUATION, seed)], adviser)

        def act(state: Any, _: int) -> int:
            active = self.env.active_in(state)[None] if self._activity else _ALWAYS
            return int(player(self.encoder.convert(state)[None], active)[0])

        return self._evaluate_python(own, seed, episodes, act)

    def _evaluate_world(self, episodes: int, seed: int) -> list[EpisodeReturns]:
        keys = [episode_key(own, seed, episode) for own in self.seeds for episode in range(episodes)]
        env, player = CompiledEnv(self.task, keys, self.encoder, self._activity), self._player(keys, None)
        env.reset()
        played = play_all(env, lambda: player(env.encode(env.state), env.active))
        return [played.result(slice(run * episodes, (run + 1) * episodes)) for run in range(len(self.seeds))]

    def _player(self, keys: list[np.uint64], adviser: Adviser | None) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Greedy actions, step by step, for episodes that are at [N, F] and whose active advisors are [N, n]."""
        drawn, clock = np.array(keys, np.uint64), np.zeros((len(keys), 3), np.int64)

        def act(observation: np.ndarray, active: np.ndarray) -> np.ndarray:
            runs = 1 if adviser is not None else len(self.seeds)
            advice = self._advice(observation.reshape(runs, len(keys) // runs, -1), adviser)
            actions = np.zeros(len(keys), np.int64)
            heard = self._active(active, _ALWAYS)
            self._choose(advice.reshape(-1, *advice.shape[2:]), heard, drawn, clock, 0.0, actions)
            clock[:, STEPS] += 1
            return actions

        return act

    # ---- what a checkpoint keeps -------------------------------------------------------------------------------------
    def tensors(self) -> dict[str, np.ndarray]:
        """Everything the run is made of."""
        self.prepare()
        if self.updates != self._updates_due():
            raise Diverged("an update failed on the way: the network was not saved; what was saved before is better")
        updates = np.array([self.updates], np.int64)
        all_three = kept(self.state, self._episode_tensors(), self.replay.tensors())
        return {**all_three, "updates": updates, **self.exploration.tensors(self.steps)}

    def _updates_due(self) -> int:
        """How many updates so many steps bring."""
        deep, steps = self.deep, self.steps
        due = max(steps - deep.learning_starts, 0) // deep.train_freq if steps >= deep.batch_size else 0
        return due - due % deep.updates_at_once

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave."""
        given = leaves_of(tensors, self.state)
        self.replay.restore(part_of(tensors, "replay"), len(self.task.actions), self.env.waits)
        self.updates = int(whole(tensors, "updates", (1,), 0, _MOST_UPDATES)[0])
        counts = [leaf for leaf in given if leaf.dtype.kind != "f"]  # Adam's and the target network's
        require(self.updates == self._updates_due() and all((leaf == self.updates).all() for leaf in counts), "updates")
        self.state = networks_of(given, self.state)
        self.exploration.restore(tensors, self.steps)
        self._resume(part_of(tensors, "episodes"), self.replay.clock[:, STEPS])
