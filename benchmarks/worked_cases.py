"""Three policies of real packages, diagnosed, and trained again with the reward changed: was the finding true?

    python benchmarks/worked_cases.py --case hopper --change ctrl=0 --seeds 1 2    # at most minutes a training
    python benchmarks/worked_cases.py --case cheetah --gamma 0.9 --seeds 0
    python benchmarks/worked_cases.py --case hopper --seeds 1 --answers 30         # how long an answer takes
    python benchmarks/worked_cases.py --case hopper --seeds 1 --coverage 600       # how often intervals hold
    python benchmarks/worked_cases.py --write                                      # docs/worked-cases.json

Needs `pip install 'multiadvisor[benchmarks]'` and MuJoCo. Each training is a file in runs/worked-cases, which is not
trained again. Changes were chosen on seed 0, which is not reported.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import multiadvisor as mad
from measures.tables import machine
from multiadvisor.diagnosis.branches import Branches, spread_over, states
from multiadvisor.diagnosis.consequences import LENGTHS, consequences
from multiadvisor.diagnosis.sample import Watch, gather

FOLDER = Path("runs/worked-cases")
OUT = Path(__file__).parent.parent / "docs" / "worked-cases.json"
EPISODES = 20
GAMMA, TERMS = 0.99, "info:reward_*"
FEW, REPEATS = (5, 20), 500
LANDER = {"result": 1.0, "shaping": 1.0, "main_engine": 0.3, "side_engine": 0.03}


class Weighted(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A reward whose terms, which `info` has, are multiplied by other factors; `time` is what every step costs."""

    def __init__(self, env: Any, factors: dict[str, float]) -> None:
        super().__init__(env)
        self._factors = {name: factor for name, factor in factors.items() if name != "time"}
        self._cost = factors.get("time", 0.0)

    def step(self, action: Any) -> Any:
        """One step, paid by the changed terms."""
        seen, reward, terminated, truncated, info = self.env.step(action)
        more = sum((factor - 1) * float(info[f"reward_{name}"]) for name, factor in self._factors.items())
        return seen, float(reward) + more - self._cost, terminated, truncated, info


class Terms(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment of MO-Gymnasium with one reward, and its weighted components in `info`."""

    def step(self, action: Any) -> Any:
        """One step."""
        seen, reward, terminated, truncated, info = self.env.step(action)
        terms = {name: weight * float(paid) for (name, weight), paid in zip(LANDER.items(), reward, strict=True)}
        named = {f"reward_{name}": paid for name, paid in terms.items()}
        return seen, sum(terms.values()), terminated, truncated, {**info, **named}


class Case(NamedTuple):
    """An environment, and the model that learns in it."""

    make: Callable[[], Any]
    model: Callable[[Callable[[], Any], int], Any]
    steps: int
    title: str
    branches: int = 200


def _lander() -> Any:
    import mo_gymnasium

    return Terms(mo_gymnasium.make("mo-lunar-lander-v3"))


def _ppo(make: Callable[[], Any], seed: int) -> Any:
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)
    env = make_vec_env(make, n_envs=8, seed=seed)
    return PPO("MlpPolicy", env, n_steps=256, seed=seed, device="cpu")


def _sac(make: Callable[[], Any], seed: int) -> Any:
    from sbx import SAC

    return SAC("MlpPolicy", make(), seed=seed, learning_starts=1_000, policy_kwargs={"net_arch": [64, 64]})


CASES = {
    "hopper": Case(lambda: gymnasium.make("Hopper-v5"), _ppo, 100_000, "PPO of Stable-Baselines3 on Hopper-v5"),
    "cheetah": Case(lambda: gymnasium.make("HalfCheetah-v5"), _sac, 40_000, "SAC of SBX on HalfCheetah-v5"),
    "lander": Case(
        _lander, _ppo, 100_000, "PPO of Stable-Baselines3 on mo-lunar-lander-v3", 60
    ),  # every branch plays the episode until there once more
}


def named(name: str, factors: dict[str, float], seed: int, suffix: str) -> Path:
    """Where a training is kept."""
    words = "-".join(f"{term}-{factor:g}" for term, factor in factors.items()) or "as-it-is"
    return FOLDER / f"{name}-{words}-{seed}{suffix}"


def trained(name: str, factors: dict[str, float], seed: int) -> Any:
    """A policy that was trained with the terms multiplied by these factors; its own package keeps and loads it."""
    case, place = CASES[name], named(name, factors, seed, ".zip")
    model = case.model(lambda: Weighted(case.make(), factors), seed)
    if place.exists():
        return type(model).load(place)
    model.learn(case.steps)
    model.save(place)
    return model


def made(name: str, factors: dict[str, float], seed: int, gamma: float = GAMMA) -> dict[str, Any]:
    """Train, and say of the environment's own terms what the policy is paid; without a change, diagnose it too."""
    start = time.process_time()
    model = trained(name, factors, seed)
    spent = time.process_time() - start
    case = CASES[name]
    found = mad.diagnose(case.make(), model, TERMS, gamma=gamma, branches=0 if factors else case.branches, seed=100,
                         progress=False)  # fmt: skip
    whole = [one for one in found.sample.episodes if one.complete][:EPISODES]
    return {
        "case": name, "factors": factors, "seed": seed, "gamma": gamma, "machine": machine(),
        "terms": [one.name for one in found.terms], "episodes": [one.terms.sum(axis=0).tolist() for one in whole],
        "lengths": [len(one.actions) for one in whole], "train_seconds": spent,
        "diagnose_seconds": time.process_time() - start - spent, "diagnosis": found.as_dict(), "report": str(found),
    }  # fmt: skip


def kept(name: str, factors: dict[str, float], seed: int, gamma: float = GAMMA) -> dict[str, Any]:
    """The same, from its file where there is one."""
    place = named(name, factors, seed, ".json" if gamma == GAMMA else f"-gamma-{gamma:g}.json")
    if not place.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(made(name, factors, seed, gamma)), "utf-8")
    found: dict[str, Any] = json.loads(place.read_text("utf-8"))
    return found


def answer_times(name: str, seed: int, count: int) -> str:
    """The CPU time of answers on so many states of fresh episodes, by the steps of a branch."""
    asked = consequences(CASES[name].make(), trained(name, {}, seed), TERMS, gamma=GAMMA, seed=100, progress=False)
    one = asked.brancher
    sample = gather(one.simulator, one.policy.act, one.terms, 3_000, 50_000, Watch())
    asked_of = spread_over(sample, count, seed)
    lines = [f"{asked}\n{one.draws} pairs of {one.horizon} steps were found to be enough"]
    for length in LENGTHS:
        other = replace(asked, brancher=replace(one, horizon=length))
        times = [1e3 * other.compare(moment).seconds for _, _, moment in states(one.simulator, sample, asked_of)]
        usual, most = (f"{figure:.0f} ms of CPU time" for figure in (np.median(times), max(times)))
        lines.append(f"of {length} steps: {usual} (median of {len(times)} states), at most {most}")
    return "\n".join(lines)


def coverage(name: str, seed: int, count: int) -> str:
    """How often the interval of the push from a few episodes holds the push of all, by term."""
    found = mad.diagnose(CASES[name].make(), trained(name, {}, seed), TERMS, branches=count, seed=100, progress=False)
    effects, chance, lines = found.effects, np.random.default_rng(0), []
    assert effects is not None
    whole = np.array([one.value for one in effects.push()])
    for few in FEW:
        pushes = [_few(effects, chance.choice(np.unique(effects.episode), few)).push() for _ in range(REPEATS)]
        inside = np.mean([[one.low <= true <= one.high for one, true in zip(push, whole, strict=True)]
                          for push in pushes], axis=0)  # fmt: skip
        shares = ", ".join(f"{term.name} {share:.0%}" for term, share in zip(found.terms, inside, strict=True))
        lines.append(f"intervals from {few} of {found.episodes} episodes hold the push of all: {shares}")
    return "\n".join(lines)


def _few(effects: Branches, episodes: np.ndarray) -> Branches:
    """The branches of some episodes, each as often as it was drawn."""
    rows = [np.flatnonzero(effects.episode == number) for number in episodes]
    own = np.repeat(np.arange(len(rows)), list(map(len, rows)))
    whole = np.concatenate(rows)
    return replace(effects, episode=own, place=effects.place[whole], effects=effects.effects[whole])


def table(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: what policies of a case are paid in an episode by the environment's own terms, mean and deviation."""
    rows = sorted(
        (one for one in rows if one["case"] == name), key=lambda one: (list(one["factors"].items()), one["seed"])
    )
    terms, limit = rows[0]["terms"], CASES[name].make().spec.max_episode_steps
    head = ("trained with", "seed", "episodes", "steps", "reached the limit", *terms)
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for one in rows:
        paid = np.array(one["episodes"])
        cells = [f"{mean:.4g} ({spread:.2g})" for mean, spread in zip(paid.mean(axis=0), paid.std(axis=0), strict=True)]
        changes = (
            f"each step costs {x:g}" if term == "time" else f"{term} x {x:g}" for term, x in one["factors"].items()
        )
        lengths = np.array(one["lengths"])
        first = (
            ", ".join(changes) or "its own reward", str(one["seed"]), str(len(paid)), f"{lengths.mean():.0f}",
            str((lengths >= limit).sum()),
        )  # fmt: skip
        lines.append(f"| {' | '.join((*first, *cells))} |")
    return "\n".join(lines)


def _factors(words: Sequence[str]) -> dict[str, float]:
    return {name: float(factor) for name, factor in (word.split("=") for word in words)}


def main() -> None:
    """Train what is asked for, or write what was trained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--change", nargs="*", default=[], metavar="TERM=FACTOR")
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--gamma", type=float, default=GAMMA)
    parser.add_argument("--answers", type=int, metavar="STATES")
    parser.add_argument("--coverage", type=int, metavar="STATES")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.case:
        for seed in given.seeds:
            for measure, count in ((answer_times, given.answers), (coverage, given.coverage)):
                if count:
                    print(given.case, seed, measure(given.case, seed, count), flush=True)
            if given.answers or given.coverage:
                continue
            one = kept(given.case, _factors(given.change), seed, given.gamma)
            spent = (round(one[f"{what}_seconds"]) for what in ("train", "diagnose"))
            print(one["case"], one["factors"], one["seed"], "trained in {} s, diagnosed in {} s".format(*spent))
            print(one["report"], flush=True)
    if given.write:
        rows = [json.loads(place.read_text("utf-8")) for place in sorted(FOLDER.glob("*.json"))]
        rows = [{key: part for key, part in one.items() if key != "diagnosis"} for one in rows
                if one["seed"] and one.get("gamma", GAMMA) == GAMMA]  # fmt: skip
        OUT.write_text(json.dumps(rows, indent=1), "utf-8")
        for name in CASES:
            if any(one["case"] == name for one in rows):
                print(CASES[name].title, table(name, rows), sep="\n\n", end="\n\n")


if __name__ == "__main__":
    main()
