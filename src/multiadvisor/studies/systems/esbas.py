"""ESBAS (Laroche and Feraud 2017): which of several learners plays the next dialogue is chosen by a bandit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.core.intervals import paired
from multiadvisor.core.optional_dependencies import require
from multiadvisor.envs.spaces import Bins
from multiadvisor.learners.dqn.dqn_settings import DQN
from multiadvisor.learners.ensembles.algorithm_selection import Portfolio
from multiadvisor.runs.jobs import Job, Tell, kind, silent
from multiadvisor.studies.claims import JudgedClaim, above, below
from multiadvisor.studies.study import Evidence, Panel, panel, system
from multiadvisor.task import Task

EPOCHS, GAMMA, MARGIN = 13, 0.9, 0.05
ENVIRONMENT = "multiadvisor/Negotiation-v0"
EARLY = slice(4, 7)  # epochs, of 16 to 64 dialogues


def tabled(*counts: int) -> Callable[[int], MultiAdvisor]:
    """A table with so many bins for each feature of the dialogue."""

    def make(seed: int) -> MultiAdvisor:
        bins = Bins([0.4, 0.0, 0.0, 0.0, 0.0], [0.9, 1.0, 1.0, 0.7, 1.0], counts)
        task = Task.from_gymnasium(_environment(), discretise=bins)
        return MultiAdvisor(task, planning="egocentric", gamma=GAMMA, seed=seed)

    return make


def network(*hidden: int) -> Callable[[int], MultiAdvisor]:
    """A network with these hidden layers; without any it is linear in the features."""

    def make(seed: int) -> MultiAdvisor:
        own = DQN(hidden=hidden, learning_starts=64, train_freq=1, buffer_size=20_000, learning_rate=1e-3,
                  target_update_interval=500, double=True)  # fmt: skip
        task = Task.from_gymnasium(_environment())
        return MultiAdvisor(task, planning="egocentric", gamma=GAMMA, seed=seed, learner=own)

    return make


MEMBERS: dict[str, Callable[[int], MultiAdvisor]] = {
    "coarse table": tabled(2, 2, 1, 1, 1),
    "fine table": tabled(5, 5, 3, 4, 3),
    "linear": network(),
    "network": network(64, 64),
}
COARSE, NETWORK = "coarse table", "network"


def _environment() -> Any:
    import gymnasium

    return gymnasium.make(ENVIRONMENT)


@kind("portfolio")
def portfolio_work(config: dict[str, Any], folder: Path | None = None, tell: Tell = silent) -> dict[str, Any]:
    """Play dialogues with these members: mean returns [epochs], and who was chosen [epochs, members]."""
    require("deep")
    made = {name: MEMBERS[name](config["seed"]) for name in config["members"]}
    portfolio = Portfolio(made, seed=config["seed"], gamma=GAMMA, low=-1.0, high=1.0)
    env, returns, chosen = _environment(), [], []
    for epoch in range(config["epochs"]):
        episodes = portfolio.play(env, 1)
        returns.append(float(np.mean([episode.value for episode in episodes])))
        counts = np.bincount([episode.member for episode in episodes], minlength=len(made))
        chosen.append((counts / len(episodes)).tolist())
        tell((epoch + 1) / config["epochs"])
    return {"returns": returns, "chosen": chosen}


def job(members: tuple[str, ...], seed: int) -> Job:
    """A run with all of them, or with one alone."""
    return Job("portfolio", {"members": list(members), "epochs": EPOCHS, "seed": seed})


def returns(evidence: Evidence, *members: str) -> np.ndarray:
    """The mean return of each epoch [seeds, epochs]."""
    return evidence.over(partial(job, members), "returns")


def an_episode(curves: np.ndarray) -> np.ndarray:
    """The mean return of a dialogue, of all that were played [seeds]; epochs double."""
    episodes = 2.0 ** np.arange(EPOCHS)
    total: np.ndarray = curves @ episodes / episodes.sum()
    return total


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """Staggered learners, and the regret of choosing among them."""
    alone = {name: returns(evidence, name) for name in MEMBERS}
    chosen = returns(evidence, *MEMBERS)
    best = max(alone, key=lambda name: float(an_episode(alone[name]).mean()))
    last = max(alone, key=lambda name: float(alone[name][:, -1].mean()))
    early = paired(alone[COARSE][:, EARLY].mean(axis=1), alone[NETWORK][:, EARLY].mean(axis=1))
    late = paired(alone[NETWORK][:, -1], alone[COARSE][:, -1])
    regret = paired(an_episode(alone[best]), an_episode(chosen))
    final = paired(alone[last][:, -1], chosen[:, -1])
    blind = paired(an_episode(chosen), np.mean([an_episode(one) for one in alone.values()], axis=0))
    return [
        above("early", "Staggered: the coarse table is ahead of the network in dialogues 16 to 127.", early),
        above("late", "Staggered: the network is ahead of the coarse table in the last half.", late),
        below("regret", "Against the best member alone (in hindsight), all dialogues: a dialogue's regret is below "
              f"{MARGIN:g}.", regret, MARGIN),
        below("last-half", f"Against the best member of the last half alone: it is below {MARGIN:g} there.", final,
              MARGIN),
        above("blind", "It returns more than a member taken blindly does alone.", blind),
    ]  # fmt: skip


def panels(evidence: Evidence) -> list[Panel]:
    """Returns by epoch, and who was chosen."""
    curves = {"portfolio": returns(evidence, *MEMBERS)}
    curves |= {f"{name} alone": returns(evidence, name) for name in MEMBERS}
    chosen = evidence.over(partial(job, tuple(MEMBERS)), "chosen")  # [seeds, epochs, members]
    shares = {name: chosen[:, :, k] for k, name in enumerate(MEMBERS)}
    across = "epoch, of 2^epoch dialogues"
    return [
        panel("bands", curves, np.arange(EPOCHS), (across, "mean discounted return")),
        panel("bands", shares, np.arange(EPOCHS), (across, "share of the dialogues")),
    ]


RUNS = [partial(job, members) for members in (tuple(MEMBERS), *((name,) for name in MEMBERS))]
STUDY = system("esbas", "ESBAS", 70, RUNS, findings, panels, (12, 4.5))
