"""Claims of sections 5 and 6 and of the appendix: what the paper says about its experiments."""

from __future__ import annotations

import numpy as np

from multiadvisor.core.intervals import Estimate, estimate, paired, unpaired
from multiadvisor.studies.claims import EARLY, Judgement, claim, grade, side
from multiadvisor.studies.paper import value_function as values
from multiadvisor.studies.paper.attractor_study import resting, shares
from multiadvisor.studies.paper.claims_theory import threshold
from multiadvisor.studies.paper.dqn_clipped import ON_FEATURES, dqn_final, features_final, shipped
from multiadvisor.studies.paper.noise_study import SIGMAS, farthest, noisy, radius
from multiadvisor.studies.paper.pac_boy_study import (
    AGNOSTIC,
    BEST,
    EGO_HIGH,
    EGO_LOW,
    EMPATHIC,
    LINEAR,
    SWEPT,
    Setting,
    curve,
    danger_rate,
    final,
    random_job,
    sweep,
    without_ghosts,
)
from multiadvisor.studies.paper.theory_checks import check
from multiadvisor.studies.study import LAST, Evidence, MissingResult, many

NEAR = 0.9  # near-optimal: at least this part of the best possible score
ALMOST = 0.05  # almost as good: at most this part of the best possible score behind
HARDLY = 0.05  # touches an episode that count as none
TEN, AFTER_TEN = 10, 5  # epochs, and those from then on whose mean is looked at
MUCH = 1.1  # times the steps that are much more


def percent(value: Estimate) -> str:
    """An estimated share in words."""
    return f"{100 * value.value:.0f}% [{100 * value.low:.0f}, {100 * value.high:.0f}]"


# ---- section 5.1: value function -------------------------------------------------------------------------------------
def _order(evidence: Evidence, harder: str, *easier: str) -> Judgement:
    """The share of gammas at which one target is learned worse than all others named, by paired intervals."""
    result = values.summary_of(evidence)
    rows = [row for row in result["comparisons"] if row["harder"] == harder and row["easier"] in easier]
    found: dict[str, list[str]] = {"holds": [], "reversed": [], "open": []}
    for gamma in values.GAMMAS:
        here = {row["easier"]: row["verdict"] for row in rows if row["gamma"] == gamma}
        verdict = next((one for one in ("reversed", "open") if one in here.values()), "holds")
        against = [name for name, one in here.items() if one == verdict != "holds"]
        found[verdict].append(f"{gamma:g}" + (f" ({', '.join(against)})" if against and len(easier) > 1 else ""))
    held, turned, unclear = found.values()
    seen = f"Of {len(values.GAMMAS)} gammas it holds at {', '.join(held) or 'none'}"
    seen += f"; the order is reversed at {', '.join(turned)}" if turned else ""
    seen += f"; an interval holds 0 at {', '.join(unclear)}" if unclear else ""
    seen += f" ({many(len(result['seeds']), 'seed')}, {result['reading']} reading)."
    share = len(held) / len(values.GAMMAS)
    return grade(share, share == 1.0, len(held) > len(turned), seen)


@claim("exact-values")
def _exact(evidence: Evidence) -> Judgement:
    steps = values.steps_of(values.summary_of(evidence)["exact"])
    own = np.array([steps[values.EGOCENTRIC, g] for g in values.GAMMAS])
    rl = np.array([steps[values.RL, g] for g in values.GAMMAS])
    tour = steps[values.TSP, None]
    slower, times = np.maximum(rl, tour), own / rl
    return grade(float((own - rl).mean()), bool((own > MUCH * slower).all()), bool((own > slower).all()),
                 f"Egocentric play needs {own.min():.1f} to {own.max():.1f} steps, the optimal return {rl.min():.1f} "
                 f"to {rl.max():.1f}, the tour {tour:.1f}. At the same gamma egocentric play takes {times.min():.2f} "
                 f"to {times.max():.2f} times the steps of the optimal return.")  # fmt: skip


claim("tour-is-hardest")(lambda evidence: _order(evidence, values.TSP, values.RL, values.SUMMED, values.VECTOR))
claim("return-is-harder-than-sum")(lambda evidence: _order(evidence, values.RL, values.SUMMED, values.VECTOR))
claim("vector-is-easiest")(lambda evidence: _order(evidence, values.SUMMED, values.VECTOR))


@claim("order-at-own-best-gamma")
def _own_best(evidence: Evidence) -> Judgement:
    best = values.at_best(values.summary_of(evidence))
    behind = [paired(best[harder][1], best[easier][1]) for easier, harder in values.PAIRS]
    held = [one.low > 0 for one in behind]
    listed = ", ".join(f"{target} {steps.mean():.1f}" + (f" at {gamma:g}" if gamma else "")
                       for target, (gamma, steps) in best.items())  # fmt: skip
    return grade(min(behind, key=lambda one: one.value), all(held), any(held), f"Steps: {listed}.")


def _falls(evidence: Evidence, target: str) -> tuple[float, float]:
    """How many times its fewest steps a trained target needs at the last gamma; and exact egocentric play at 0.9 those
    at 0.3."""
    result = values.summary_of(evidence)
    trained, exact = values.steps_of(result["table"]), values.steps_of(result["exact"])
    best = min(trained[target, g] for g in values.GAMMAS)
    return trained[target, values.GAMMAS[-1]] / best, exact[values.EGOCENTRIC, 0.9] / exact[values.EGOCENTRIC, 0.3]


@claim("fall-at-high-gamma")
def _fall(evidence: Evidence) -> Judgement:
    ratio, known = _falls(evidence, values.VECTOR)
    return grade(ratio, ratio >= 1.5 and known >= 1.5, ratio >= 1.2,
                 f"Trained it is {ratio:.2f} times the steps, with exact values {known:.2f} times.")  # fmt: skip


@claim("fall-by-attractors")
def _cause(evidence: Evidence) -> Judgement:
    ratio, known = _falls(evidence, values.RL)
    return grade(ratio, known >= 1.5 and ratio < 1.5, known >= 1.5,
                 f"With exact values egocentric play takes {known:.2f} times the steps at gamma 0.9 that it takes at "
                 f"0.3{', which only attractors can explain' if known >= 1.5 else ''}. The trained optimal return, "
                 f"which has none, takes {ratio:.2f} times its best at 0.99"
                 f"{': there networks also fail for another reason' if ratio >= 1.5 else ''}.")  # fmt: skip


# ---- section 5.2: Pac-Boy, no noise ----------------------------------------------------------------------------------
def _near_optimal(evidence: Evidence, setting: Setting) -> Judgement:
    score = estimate(final(evidence, setting))
    return grade(score, score.low >= NEAR * BEST, score.value >= 0.8 * BEST,
                 f"The final score is {score}, {100 * score.value / BEST:.0f}% of {BEST}.")  # fmt: skip


claim("egocentric-low-is-near-optimal")(lambda evidence: _near_optimal(evidence, EGO_LOW))
claim("empathic-is-near-optimal")(lambda evidence: _near_optimal(evidence, EMPATHIC))


def _spared(evidence: Evidence, setting: Setting) -> Judgement:
    touches, danger = estimate(final(evidence, setting, "touches")), estimate(danger_rate(evidence, setting))
    player = evidence.result(random_job(evidence.plan))
    blind, reckless = float(np.mean(player["touches"])), player["danger"][1] / max(player["danger"][0], 1)
    rare = touches.high < 0.1 * blind and danger.high < 0.1 * reckless
    return grade(touches, touches.high <= HARDLY and rare, rare,
                 f"It is touched {touches} times an episode, a random player {blind:.1f} times: that is "
                 f"{100 * touches.value / blind:.1f}% as often. In 100 steps that begin within two steps of a ghost "
                 f"it is touched {100 * danger.value:.2f} [{100 * danger.low:.2f}, {100 * danger.high:.2f}] times, a "
                 f"random player {100 * reckless:.2f} times.")  # fmt: skip


claim("egocentric-low-takes-no-risk")(lambda evidence: _spared(evidence, EGO_LOW))


@claim("egocentric-low-controls-best")
def _controls(evidence: Evidence) -> Judgement:
    mine = final(evidence, EGO_LOW, "touches")
    others = {s.name: final(evidence, s, "touches") for s in (EMPATHIC, AGNOSTIC, EGO_HIGH)}
    apart = {name: paired(their, mine) for name, their in others.items()}
    steps = {s.name: final(evidence, s, "length") for s in (EGO_LOW, EMPATHIC, AGNOSTIC, EGO_HIGH)}
    pace = {name: {EGO_LOW.name: mine, **others}[name] / length for name, length in steps.items()}
    slower = [paired(pace[name], pace[EGO_LOW.name]).low > 0 for name in others]
    danger = {s.name: danger_rate(evidence, s) for s in (EGO_LOW, EMPATHIC, AGNOSTIC, EGO_HIGH)}
    safer = [paired(danger[name], danger[EGO_LOW.name]).low > 0 for name in others]
    episodes = [one.low > 0 for one in apart.values()]
    more = ", ".join(f"{name} {side(one, 'times more', 'times less')}" for name, one in apart.items())
    rates = ", ".join(f"{name} {100 * rate.mean():.3f} ({steps[name].mean():.0f})" for name, rate in pace.items())
    return grade(apart[EMPATHIC.name], all(episodes) and all(slower) and all(safer), any(episodes),
                 f"Touched in an episode, against egocentric 0.4: {more}. Touches per 100 steps (and steps of an "
                 f"episode): {rates}. Touches per 100 steps that begin within two of a ghost: "
                 + ", ".join(f"{name} {100 * rate.mean():.2f}" for name, rate in danger.items()) + ".")  # fmt: skip


@claim("egocentric-high-is-stuck")
def _high_stuck(evidence: Evidence) -> Judgement:
    done = estimate(final(evidence, EGO_HIGH, "terminated"))
    return grade(done, done.high <= 0.01, done.high <= 0.25, f"It finishes {percent(done)} of its episodes.")


@claim("egocentric-high-goes-to-the-centre")
def _centre(evidence: Evidence) -> Judgement:
    middle, blind = estimate(resting(evidence, "centre")), float(resting(evidence, "centre_chance").mean())
    return grade(middle, middle.high <= 3.0 and middle.high < blind, middle.high < blind,
                 f"Its mean distance from the centre is {middle}, that of all cells {blind:.2f}.")  # fmt: skip


@claim("egocentric-high-waits-for-ghosts")
def _waits(evidence: Evidence) -> Judgement:
    calm, chased, stood, left = (
        estimate(resting(evidence, f"{what}_{where}")) for what in ("still", "stood") for where in ("far", "near")
    )
    waits, stays = (one.low > 0.9 and one.low > other.high for one, other in ((calm, chased), (stood, left)))
    return grade(stood, stays, waits,
                 f"Away from ghosts it stands in {percent(stood)} of the late steps, near them in {percent(left)}. "
                 f"With going to and fro between two cells it keeps its place in {percent(calm)}, near them in "
                 f"{percent(chased)}; it eats {resting(evidence, 'eaten_late').mean():.2f} fruits an episode then."
                 )  # fmt: skip


claim("egocentric-high-avoids-ghosts")(lambda evidence: _spared(evidence, EGO_HIGH))


@claim("egocentric-high-barely-beats-linear")
def _barely(evidence: Evidence) -> Judgement:
    mine, (swept, (_, tuned)) = final(evidence, EGO_HIGH), next(iter(sweep(evidence).items()))
    ahead, least = paired(mine, final(evidence, LINEAR)), float(mine.mean() - tuned.mean())
    way = BEST - float(np.mean(evidence.result(random_job(evidence.plan))["score"]))
    return grade(ahead, ahead.low > 0 and ahead.high < 0.1 * way and 0 < least < 0.1 * way, ahead.low > 0,
                 f"It is {side(ahead, 'points ahead', 'points behind')}, {100 * abs(ahead.value) / way:.0f}% of the "
                 "way from the random player to the best possible score. The paper states neither learning rate nor "
                 f"gamma of its linear Q-learning; ours ends at {estimate(final(evidence, LINEAR))}. The best of "
                 f"{len(SWEPT)} settings (gamma {swept.gamma:g}, alpha {swept.alpha:g}, epsilon {swept.epsilon:g}) "
                 f"ends at {tuned.mean():.2f} ({many(len(tuned), 'seed')}).")  # fmt: skip


@claim("empathic-almost-as-good")
def _almost(evidence: Evidence) -> Judgement:
    behind = paired(final(evidence, EGO_LOW), final(evidence, EMPATHIC))
    return grade(behind, behind.high <= ALMOST * BEST, behind.value <= ALMOST * BEST,
                 f"It is {side(behind, 'points behind', 'points ahead')}.")  # fmt: skip


@claim("agnostic-is-unreliable")
def _unreliable(evidence: Evidence) -> Judgement:
    done = estimate(final(evidence, AGNOSTIC, "terminated"))
    return grade(done, done.high < 0.9, done.value < 0.95, f"It finishes {percent(done)} of its episodes.")


@claim("agnostic-rarely-finishes")
def _rarely(evidence: Evidence) -> Judgement:
    mine, kind = final(evidence, AGNOSTIC, "terminated"), final(evidence, EMPATHIC, "terminated")
    early = curve(evidence, AGNOSTIC, "terminated")[:, 0]
    done = estimate(mine)
    return grade(done, done.high < 0.25, done.high < 0.5,
                 f"It finishes {percent(done)} of its episodes, {_than(paired(mine, kind), 'more', 'fewer')} empathic "
                 f"planning with {percent(estimate(kind))}. {_since(paired(mine, early), early)}The paper's picture of "
                 "the maze was not at hand; how many fruits lie where ghosts pass depends on it.")  # fmt: skip


def _than(change: Estimate, more: str, less: str) -> str:
    """How two figures compare, as far as the interval tells."""
    return f"{more} than" if change.low > 0 else f"{less} than" if change.high < 0 else "not clearly more or fewer than"


def _since(change: Estimate, early: np.ndarray) -> str:
    """What became of the share of the first epoch; nothing is said where its interval says nothing."""
    if change.low <= 0 <= change.high:
        return ""
    way = "risen" if change.low > 0 else "fallen"
    return f"It has {way} from the {100 * early.mean():.0f}% of the first epoch. "


@claim("agnostic-fears-ghosts")
def _fear(evidence: Evidence) -> Judgement:
    calm = final(evidence, without_ghosts(AGNOSTIC), "terminated")
    gained = paired(calm, final(evidence, AGNOSTIC, "terminated"))
    return grade(gained, gained.low > 0.1 and calm.mean() >= 0.95, gained.low > 0,
                 f"Without ghosts it finishes {percent(estimate(calm))} of its episodes; the difference to "
                 f"those with ghosts is {percent(gained)}.")  # fmt: skip


@claim("egocentric-low-learns-faster")
def _faster(evidence: Evidence) -> Judgement:
    low, kind = (curve(evidence, s)[:, :EARLY].mean(axis=1) for s in (EGO_LOW, EMPATHIC))
    ahead = paired(low, kind)
    return grade(ahead, ahead.low > 0, ahead.value > 0,
                 f"In the first epochs it is {side(ahead, 'points ahead', 'points behind')}.")  # fmt: skip


@claim("egocentric-low-finishes-sooner")
def _sooner(evidence: Evidence) -> Judgement:
    sooner = paired(final(evidence, EMPATHIC, "length"), final(evidence, EGO_LOW, "length"))
    return grade(sooner, sooner.low > 0 and 10 <= sooner.value <= 30, sooner.low > 0,
                 f"It is {side(sooner, 'steps sooner', 'steps later')}.")  # fmt: skip


# ---- section 5.2: the deep baseline ----------------------------------------------------------------------------------
@claim("dqn-is-far-from-optimal")
def _dqn_far(evidence: Evidence) -> Judgement:
    score = estimate(dqn_final(evidence))
    return grade(score, score.high < 0.8 * BEST, score.high < NEAR * BEST, f"It ends at {score}.")


@claim("dqn-leaves-the-last-fruits")
def _dqn_fruits(evidence: Evidence) -> Judgement:
    done = estimate(dqn_final(evidence, "terminated"))
    return grade(done, done.high < 0.5, done.high < 0.9, f"It finishes {percent(done)} of its episodes.")


@claim("dqn-is-hit")
def _dqn_hit(evidence: Evidence) -> Judgement:
    deep, other = dqn_final(evidence, "touches"), final(evidence, EMPATHIC, "touches")
    blind = float(np.mean(evidence.result(random_job(evidence.plan))["touches"]))
    hits, more = estimate(deep), unpaired(deep, other)
    return grade(more, more.low > 0 and hits.high < blind, hits.low > 0.1,
                 f"It is touched {hits} times an episode, empathic 0.9 {other.mean():.2f} times: the difference is "
                 f"{more}. A random player is touched {blind:.1f} times.")  # fmt: skip


@claim("agnostic-is-closer")
def _closer(evidence: Evidence) -> Judgement:
    mine = final(evidence, AGNOSTIC)
    deep, stuck = unpaired(mine, dqn_final(evidence)), paired(mine, final(evidence, EGO_HIGH))
    return grade(deep, deep.low > 0 and stuck.low > 0, stuck.low > 0,
                 f"It is {side(deep, 'points ahead of', 'points behind')} DQN-clipped and "
                 f"{side(stuck, 'ahead of', 'behind')} egocentric 0.9.")  # fmt: skip


@claim("deep-features-fail")
def _features_fail(evidence: Evidence) -> Judgement:
    score = features_final(evidence)
    ahead, own = unpaired(score, final(evidence, LINEAR)), estimate(score)
    return grade(ahead, ahead.low <= 0, own.high < 0.8 * BEST,
                 f"It ends at {own}, {side(ahead, 'points ahead of', 'points behind')} linear Q-learning "
                 f"({shipped(ON_FEATURES).origin}).")  # fmt: skip


# ---- section 5.2: noise ----------------------------------------------------------------------------------------------
@claim("empathic-under-more-noise")
def _more_noise(evidence: Evidence) -> Judgement:
    ahead = paired(final(evidence, noisy(EMPATHIC, 0.1)), final(evidence, noisy(EGO_LOW, 0.01)))
    return grade(ahead, ahead.low > 0, ahead.value > 0, f"It is {side(ahead, 'points ahead', 'points behind')}.")


def spread(evidence: Evidence, setting: Setting) -> np.ndarray:
    """[seeds]: how much the score of one run varies over its last epochs, as a standard deviation."""
    return np.asarray(curve(evidence, setting)[:, -LAST:].std(axis=1))


@claim("egocentric-low-is-unstable")
def _unstable(evidence: Evidence) -> Judgement:
    some = SIGMAS[0]
    noisy_, calm, kind = (spread(evidence, one) for one in (noisy(EGO_LOW, some), EGO_LOW, noisy(EMPATHIC, some)))
    more = paired(noisy_, calm)
    seeds = [float(final(evidence, noisy(EGO_LOW, sigma)).std(ddof=1)) for sigma in (0.0, some)]
    times = (float(noisy_.mean() / max(calm.mean(), 1e-12)), seeds[1] / max(seeds[0], 1e-12))
    return grade(more, more.low > 0 and min(times) >= 2.0, more.low > 0,
                 f"Over epochs its scores deviate by {noisy_.mean():.2f} with noise, without by {calm.mean():.2f}; "
                 f"over seeds by {seeds[1]:.2f} and {seeds[0]:.2f}. Those of empathic 0.9 deviate by {kind.mean():.2f} "
                 f"over epochs with the same noise. The difference is {side(more, 'more', 'less')}.")  # fmt: skip


@claim("noise-breaks-egocentric")
def _breaks(evidence: Evidence) -> Judgement:
    some, much, clean = (final(evidence, noisy(EGO_LOW, sigma)) for sigma in (*SIGMAS, 0.0))
    lost, further = paired(clean, some), paired(some, much)
    return grade(lost, lost.low > 0 and further.low > 0, lost.low > 0,
                 f"With noise of 0.01 it ends {side(lost, 'points lower', 'points higher')}, with 0.1 "
                 f"{side(further, 'lower', 'higher')} than that.")  # fmt: skip


@claim("empathic-is-robust")
def _robust(evidence: Evidence) -> Judgement:
    blurred = final(evidence, noisy(EMPATHIC, 0.1))
    lost = paired(final(evidence, EMPATHIC), blurred)
    return grade(lost, lost.high <= ALMOST * BEST, lost.value <= ALMOST * BEST,
                 f"With noise of 0.1 it ends {side(lost, 'points lower', 'points higher')}.")  # fmt: skip


@claim("sight-through-noise")
def _sight(evidence: Evidence) -> Judgement:
    low, high = (radius(evidence, noisy(s, 0.01)) for s in (EGO_LOW, EGO_HIGH))
    blurred = radius(evidence, noisy(EGO_LOW, 0.1))
    further, shorter = paired(high, low), paired(low, blurred)
    end = farthest(evidence, noisy(EGO_HIGH, 0.01))
    cut = bool((high == end).any() and (low < end).all())
    seen = (
        f"At gamma 0.9 fruit is perceived {'at least ' * cut}{side(further, 'steps further', 'steps less far')} than "
    )
    seen += f"at 0.4{f', as the maze ends after {end} steps' * cut}. At 0.4 noise of 0.1 has it perceived "
    seen += f"{side(shorter, 'steps less far', 'steps further')} than noise of 0.01."
    return grade(further, further.low > 0 and shorter.low > 0, further.low > 0 or shorter.low > 0, seen, cut)


# ---- section 6 -------------------------------------------------------------------------------------------------------
@claim("empathic-after-ten-epochs")
def _ten(evidence: Evidence) -> Judgement:
    if evidence.plan.epochs < TEN:
        raise MissingResult(f"runs of {many(evidence.plan.epochs, 'epoch')} say nothing about what is learned in {TEN}")
    runs = curve(evidence, EMPATHIC)
    score = estimate(runs[:, TEN - 1 : TEN - 1 + AFTER_TEN].mean(axis=1))
    smooth = np.convolve(runs.mean(axis=0), np.ones(AFTER_TEN) / AFTER_TEN, "valid")  # so many epochs each
    there = np.flatnonzero(smooth >= NEAR * BEST)
    when = f"first in the mean of epochs {there[0] + 1} to {there[0] + AFTER_TEN}" if len(there) else "never"
    return grade(score, score.low >= NEAR * BEST, score.value >= 0.8 * BEST,
                 f"By then the score is {score}, {100 * score.value / BEST:.0f}% of the best possible; 90% is reached "
                 f"{when}, and the final score is {estimate(final(evidence, EMPATHIC))}.")  # fmt: skip


@claim("empathic-always-converges")
def _converges(evidence: Evidence) -> Judgement:
    *blurred, clear = (float(final(evidence, noisy(EMPATHIC, sigma)).min()) for sigma in (*SIGMAS, 0.0))
    worst = [clear, *blurred]
    return grade(worst[0], min(worst) >= 0.8 * BEST, worst[0] >= 0.8 * BEST,
                 "The lowest seeds end at " + ", ".join(f"{one:.1f}" for one in worst)
                 + " without noise, with 0.01 and with 0.1.")  # fmt: skip


@claim("attractor-free-is-not-optimal")
def _free(evidence: Evidence) -> Judgement:
    found = check(evidence, "bound")
    share = float(np.mean(np.array(found["short"]) > 1e-9))
    return grade(share, share > 0 and sum(found["attractors"]) == 0, share > 0,
                 f"The policy is below the optimum in {100 * share:.0f}% of the MDPs.")  # fmt: skip


@claim("bridges-are-avoided")
def _bridges(evidence: Evidence) -> Judgement:
    rows = check(evidence, "bridges")["rows"]
    afraid = [row["crosses"] for row in rows if row["planning"] == "agnostic"]
    bold = [row["crosses"] for row in rows if row["planning"] != "agnostic"]
    stepped = ", ".join(str(row["length"]) for row in rows if row["planning"] == "agnostic" and row["crosses"] > 0)
    return grade(float(np.mean(afraid)), max(afraid) == 0 and min(bold) == 1, np.mean(afraid) < np.mean(bold),
                 f"It steps onto {f'bridges of length {stepped}' if stepped else 'no bridge'}; the others cross with "
                 f"probability {np.mean(bold):.2f}.")  # fmt: skip


# ---- appendix --------------------------------------------------------------------------------------------------------
claim("four-fruits")(lambda evidence: threshold(evidence, "four-fruits"))


@claim("relaxed-bound")
def _relaxed(evidence: Evidence) -> Judgement:
    rows = shares(evidence)
    below = max(max(row["stable"], row["stuck"]) for row in rows if row["gamma"] <= 0.5 + 1e-12)
    above = max(row["stuck"] for row in rows if row["gamma"] > 0.5 + 1e-12)
    return grade(below, below == 0 and above > 0, below < 0.01, f"Up to 1/2 it is {100 * below:.1f}% of the boards.")


@claim("random-player")
def _random(evidence: Evidence) -> Judgement:
    score = estimate(evidence.result(random_job(evidence.plan))["score"])
    close = score.low <= -80 <= score.high or abs(score.value + 80) <= 5
    return grade(score, close, abs(score.value + 80) <= 20, f"It scores {score}.")
