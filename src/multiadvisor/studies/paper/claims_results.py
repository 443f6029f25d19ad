"""Claims of sections 5 and 6 and of the appendix: what the paper says about its experiments."""

from __future__ import annotations

import numpy as np

from multiadvisor.core.intervals import Estimate, estimate, paired, unpaired
from multiadvisor.studies.claims import EARLY, Judgement, claim, grade, side
from multiadvisor.studies.paper import value_function as values
from multiadvisor.studies.paper.attractor_study import resting, shares
from multiadvisor.studies.paper.claims_planning import threshold
from multiadvisor.studies.paper.noise_study import SIGMAS, farthest, noisy, radius
from multiadvisor.studies.paper.pac_boy_study import (
    AGNOSTIC,
    BEST,
    EGO_HIGH,
    EGO_LOW,
    EMPATHIC,
    LINEAR,
    Setting,
    at,
    curve,
    dqn_final,
    final,
    random_job,
    with_rules,
    without_ghosts,
)
from multiadvisor.studies.paper.theory_checks import check
from multiadvisor.studies.study import Evidence, MissingResult, many

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


_ORDER = "share of gammas at which the paired interval of steps is on the paper's side"
_ORDERS = _ORDER + ", against each of them"


@claim(
    "exact-values", "section 5.1",
    "With exact values the tour and the optimal return collect the fruit much faster than egocentric values.",
    "steps of egocentric play less those of the optimal return, both exact, mean over gammas",
    "egocentric play takes a tenth longer than either, at every gamma (partly: it is behind both at every gamma)",
)  # fmt: skip
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


claim(
    "tour-is-hardest", "section 5.1", "Of the four targets the tour is the hardest to learn.",
    f"{_ORDERS} (return, summed, vector)", "all of them",
)(lambda evidence: _order(evidence, values.TSP, values.RL, values.SUMMED, values.VECTOR))  # fmt: skip

claim(
    "return-is-harder-than-sum", "section 5.1",
    "The optimal return is harder to learn than the egocentric one, even without any decomposition (summed).",
    f"{_ORDERS} (summed, vector)", "all of them",
)(lambda evidence: _order(evidence, values.RL, values.SUMMED, values.VECTOR))  # fmt: skip

claim(
    "vector-is-easiest", "section 5.1", "Learning is easier still if the target is decomposed into a vector.",
    _ORDER, "all of them",
)(lambda evidence: _order(evidence, values.SUMMED, values.VECTOR))  # fmt: skip


@claim(
    "fall-at-high-gamma", "section 5.1", "Egocentric performance falls dramatically as gamma nears 1.",
    "steps of the trained vector at gamma 0.99 over those at its best gamma",
    "at least 1.5 times, for the vector and for exact values at 0.9 against 0.3",
)  # fmt: skip
def _fall(evidence: Evidence) -> Judgement:
    result = values.summary_of(evidence)
    trained, exact = values.steps_of(result["table"]), values.steps_of(result["exact"])
    best = min(trained[values.VECTOR, g] for g in values.GAMMAS)
    ratio = trained[values.VECTOR, values.GAMMAS[-1]] / best
    known = exact[values.EGOCENTRIC, 0.9] / exact[values.EGOCENTRIC, 0.3]
    return grade(ratio, ratio >= 1.5 and known >= 1.5, ratio >= 1.2,
                 f"Trained it is {ratio:.2f} times the steps, with exact values {known:.2f} times.")  # fmt: skip


@claim(
    "fall-by-attractors", "section 5.1", "The cause of that fall are attractors.",
    "steps of the trained optimal return, which has no attractors, at gamma 0.99 over those at its best gamma",
    "exact egocentric play falls by 1.5 times or more, and the trained optimal return does not fall by as much",
)  # fmt: skip
def _cause(evidence: Evidence) -> Judgement:
    result = values.summary_of(evidence)
    trained, exact = values.steps_of(result["table"]), values.steps_of(result["exact"])
    known = exact[values.EGOCENTRIC, 0.9] / exact[values.EGOCENTRIC, 0.3]
    ratio = trained[values.RL, values.GAMMAS[-1]] / min(trained[values.RL, g] for g in values.GAMMAS)
    return grade(ratio, known >= 1.5 and ratio < 1.5, known >= 1.5,
                 f"With exact values egocentric play takes {known:.2f} times the steps at gamma 0.9 that it takes at "
                 f"0.3{', which only attractors can explain' if known >= 1.5 else ''}. The trained optimal return, "
                 f"which has none, takes {ratio:.2f} times its best at 0.99"
                 f"{': there networks also fail for another reason' if ratio >= 1.5 else ''}.")  # fmt: skip


# ---- section 5.2: Pac-Boy, no noise ----------------------------------------------------------------------------------
def _near_optimal(evidence: Evidence, setting: Setting) -> Judgement:
    score = estimate(at(evidence, setting))
    return grade(score, score.low >= NEAR * BEST, score.value >= 0.8 * BEST,
                 f"The final score is {score}, {100 * score.value / BEST:.0f}% of {BEST}.")  # fmt: skip


_SCORE = ", the mean of {last}, over seeds"

claim(
    "egocentric-low-is-near-optimal", "section 5.2", "Egocentric planning with gamma 0.4 plays nearly optimally.",
    "final score of egocentric 0.4" + _SCORE, "the interval is at or above 90% of the best possible score, 37.5",
)(lambda evidence: _near_optimal(evidence, EGO_LOW))  # fmt: skip

claim(
    "empathic-is-near-optimal", "section 5.2", "Empathic planning with gamma 0.9 plays nearly optimally.",
    "final score of empathic 0.9" + _SCORE, "the interval is at or above 90% of the best possible score, 37.5",
)(lambda evidence: _near_optimal(evidence, EMPATHIC))  # fmt: skip


def _spared(evidence: Evidence, setting: Setting) -> Judgement:
    touches = estimate(at(evidence, setting, "touches"))
    blind = float(np.mean(evidence.result(random_job(evidence.plan))["touches"]))
    return grade(touches, touches.high <= HARDLY, touches.high < 0.1 * blind,
                 f"It is touched {touches} times an episode, a random player {blind:.1f} times: that is "
                 f"{100 * touches.value / blind:.1f}% as often.")  # fmt: skip


_TOUCHES = "touches by ghosts in an episode, the mean of {last}, "
_NONE = "the interval is at or below 0.05, which is as good as none (partly: below a tenth of the random player's)"

claim(
    "egocentric-low-takes-no-risk", "section 5.2",
    "Egocentric planning with gamma 0.4 comes close to the ghosts and yet takes no risk.",
    _TOUCHES + "egocentric 0.4", _NONE,
)(lambda evidence: _spared(evidence, EGO_LOW))  # fmt: skip


@claim(
    "egocentric-low-controls-best", "section 5.2",
    "Near ghosts egocentric planning with a small gamma has an advantage over the other settings.",
    "touches an episode of empathic less egocentric 0.4, paired by seed",
    "the interval is above 0, against agnostic 0.9 and egocentric 0.9 as well, and so are touches per step",
)  # fmt: skip
def _controls(evidence: Evidence) -> Judgement:
    mine = at(evidence, EGO_LOW, "touches")
    others = {s.name: at(evidence, s, "touches") for s in (EMPATHIC, AGNOSTIC, EGO_HIGH)}
    apart = {name: paired(their, mine) for name, their in others.items()}
    steps = {s.name: at(evidence, s, "length") for s in (EGO_LOW, EMPATHIC, AGNOSTIC, EGO_HIGH)}
    pace = {name: {EGO_LOW.name: mine, **others}[name] / length for name, length in steps.items()}
    slower = [paired(pace[name], pace[EGO_LOW.name]).low > 0 for name in others]
    episodes = [one.low > 0 for one in apart.values()]
    more = ", ".join(f"{name} {side(one, 'times more', 'times less')}" for name, one in apart.items())
    rates = ", ".join(f"{name} {100 * rate.mean():.3f} ({steps[name].mean():.0f})" for name, rate in pace.items())
    return grade(apart[EMPATHIC.name], all(episodes) and all(slower), any(episodes),
                 f"Touched in an episode, against egocentric 0.4: {more}. Touches per 100 steps (and steps of an "
                 f"episode): "
                 f"{rates}.")  # fmt: skip


@claim(
    "egocentric-high-is-stuck", "section 5.2",
    "With gamma 0.9 egocentric planning falls into attractors and does not finish its episodes.",
    "share of episodes with all fruit eaten, egocentric 0.9", "the interval is at or below 0.01",
)  # fmt: skip
def _high_stuck(evidence: Evidence) -> Judgement:
    done = estimate(at(evidence, EGO_HIGH, "terminated"))
    return grade(done, done.high <= 0.01, done.high <= 0.25, f"It finishes {percent(done)} of its episodes.")


@claim(
    "egocentric-high-goes-to-the-centre", "section 5.2",
    "With gamma 0.9 the egocentric agent goes to the centre of the maze and stays there.",
    "mean distance from the centre, in rows or columns, whichever is more, of where it stands from step 60 on",
    "the interval is below that of a cell chosen blindly, and so low that it stands within the inner 7 x 7 cells",
)  # fmt: skip
def _centre(evidence: Evidence) -> Judgement:
    middle, blind = estimate(resting(evidence, "centre")), float(resting(evidence, "centre_chance").mean())
    return grade(middle, middle.high <= 3.0 and middle.high < blind, middle.high < blind,
                 f"Its mean distance from the centre is {middle}, that of all cells {blind:.2f}.")  # fmt: skip


@claim(
    "egocentric-high-waits-for-ghosts", "section 5.2",
    "It does not move until a ghost comes close.",
    "share of late steps in which it stays, or goes to and fro between two cells, while no ghost is within 4 steps",
    "the interval is above 0.9, and above the share while a ghost is near",
)  # fmt: skip
def _waits(evidence: Evidence) -> Judgement:
    calm, chased = estimate(resting(evidence, "still_far")), estimate(resting(evidence, "still_near"))
    return grade(calm, calm.low > 0.9 and calm.low > chased.high, calm.low > 0.5,
                 f"Away from ghosts it keeps its place in {percent(calm)} of the late steps, near them in "
                 f"{percent(chased)}; it eats {resting(evidence, 'eaten_late').mean():.2f} fruits an episode then."
                 )  # fmt: skip


claim(
    "egocentric-high-avoids-ghosts", "section 5.2", "While it is stuck, it still avoids the ghosts perfectly.",
    _TOUCHES + "egocentric 0.9", _NONE,
)(lambda evidence: _spared(evidence, EGO_HIGH))  # fmt: skip


@claim(
    "egocentric-high-barely-beats-linear", "section 5.2",
    "Egocentric planning with gamma 0.9 is barely better than linear Q-learning.",
    "final score of egocentric 0.9 less that of linear Q-learning, paired by seed",
    "the interval is above 0 and below a tenth of the way from the random player to the best possible score",
)  # fmt: skip
def _barely(evidence: Evidence) -> Judgement:
    ahead = paired(at(evidence, EGO_HIGH), at(evidence, LINEAR))
    way = BEST - float(np.mean(evidence.result(random_job(evidence.plan))["score"]))
    return grade(ahead, ahead.low > 0 and ahead.high < 0.1 * way, ahead.low > 0,
                 f"It is {side(ahead, 'points ahead', 'points behind')}, {100 * abs(ahead.value) / way:.0f}% of the "
                 "way from the random player to the best possible score. The paper states neither learning rate nor "
                 f"gamma of its linear Q-learning; ours ends at {estimate(at(evidence, LINEAR))}.")  # fmt: skip


@claim(
    "empathic-almost-as-good", "section 5.2",
    "Empathic planning is almost as good as egocentric planning with gamma 0.4.",
    "final score of egocentric 0.4 less that of empathic 0.9, paired by seed",
    "the interval is below 5% of the best possible score",
)  # fmt: skip
def _almost(evidence: Evidence) -> Judgement:
    behind = paired(at(evidence, EGO_LOW), at(evidence, EMPATHIC))
    return grade(behind, behind.high <= ALMOST * BEST, behind.value <= ALMOST * BEST,
                 f"It is {side(behind, 'points behind', 'points ahead')}.")  # fmt: skip


@claim(
    "agnostic-is-unreliable", "section 5.2", "Agnostic planning does not reliably finish the last fruits.",
    "share of episodes with all fruit eaten, agnostic 0.9", "the interval is below 0.9",
)  # fmt: skip
def _unreliable(evidence: Evidence) -> Judgement:
    done = estimate(at(evidence, AGNOSTIC, "terminated"))
    return grade(done, done.high < 0.9, done.value < 0.95, f"It finishes {percent(done)} of its episodes.")


@claim(
    "agnostic-rarely-finishes", "section 5.2", "Agnostic planning only rarely eats all the fruit.",
    "share of episodes with all fruit eaten, agnostic 0.9", "the interval is below 0.25 (partly: below 0.5)",
)  # fmt: skip
def _rarely(evidence: Evidence) -> Judgement:
    mine, kind = at(evidence, AGNOSTIC, "terminated"), at(evidence, EMPATHIC, "terminated")
    early = curve(evidence, with_rules(AGNOSTIC, evidence.plan), "terminated")[:, 0]
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


@claim(
    "agnostic-fears-ghosts", "section 5.2", "What keeps agnostic planning from the last fruits is its fear of ghosts.",
    "share of episodes with all fruit eaten without ghosts less with them, agnostic 0.9, paired by seed",
    "the interval is above 0.1, and without ghosts nearly all episodes are finished (0.95)",
)  # fmt: skip
def _fear(evidence: Evidence) -> Judgement:
    calm = final(evidence, without_ghosts(AGNOSTIC, evidence.plan), "terminated")
    gained = paired(calm, at(evidence, AGNOSTIC, "terminated"))
    return grade(gained, gained.low > 0.1 and calm.mean() >= 0.95, gained.low > 0,
                 f"Without ghosts it finishes {percent(estimate(calm))} of its episodes; the difference to "
                 f"those with ghosts is {percent(gained)}.")  # fmt: skip


@claim(
    "egocentric-low-learns-faster", "section 5.2",
    "Egocentric planning with gamma 0.4 learns a bit faster than empathic.",
    "score over {early} of egocentric 0.4 less that of empathic 0.9, paired by seed",
    "the interval is above 0", EARLY,
)  # fmt: skip
def _faster(evidence: Evidence) -> Judgement:
    low, kind = (curve(evidence, with_rules(s, evidence.plan))[:, :EARLY].mean(axis=1) for s in (EGO_LOW, EMPATHIC))
    ahead = paired(low, kind)
    return grade(ahead, ahead.low > 0, ahead.value > 0,
                 f"In the first epochs it is {side(ahead, 'points ahead', 'points behind')}.")  # fmt: skip


@claim(
    "egocentric-low-finishes-sooner", "section 5.2",
    "Egocentric planning with gamma 0.4 finishes an episode about 20 steps sooner than empathic planning.",
    "steps of an episode, empathic 0.9 less egocentric 0.4, paired by seed",
    "the interval is above 0, and the difference between 10 and 30 steps",
)  # fmt: skip
def _sooner(evidence: Evidence) -> Judgement:
    sooner = paired(at(evidence, EMPATHIC, "length"), at(evidence, EGO_LOW, "length"))
    return grade(sooner, sooner.low > 0 and 10 <= sooner.value <= 30, sooner.low > 0,
                 f"It is {side(sooner, 'steps sooner', 'steps later')}.")  # fmt: skip


# ---- section 5.2: the deep baseline ----------------------------------------------------------------------------------
@claim(
    "dqn-is-far-from-optimal", "section 5.2", "DQN with clipped rewards stays far from the best performance.",
    "final score of DQN-clipped, the mean of {dqn_last}, over seeds",
    "the interval is below 80% of the best possible score, at full length",
)  # fmt: skip
def _dqn_far(evidence: Evidence) -> Judgement:
    score = estimate(dqn_final(evidence))
    return grade(score, score.high < 0.8 * BEST, score.high < NEAR * BEST, f"It ends at {score}.")


@claim(
    "dqn-leaves-the-last-fruits", "section 5.2", "DQN with clipped rewards struggles to eat the last fruits.",
    "share of episodes with all fruit eaten, DQN-clipped, in {dqn_last}", "the interval is below 0.5, at full length",
)  # fmt: skip
def _dqn_fruits(evidence: Evidence) -> Judgement:
    done = estimate(dqn_final(evidence, "terminated"))
    return grade(done, done.high < 0.5, done.high < 0.9, f"It finishes {percent(done)} of its episodes.")


@claim(
    "dqn-is-hit", "section 5.2", "DQN with clipped rewards is hit by ghosts from time to time.",
    "touches of an episode by which DQN-clipped is above empathic 0.9",
    "the interval is above 0, and its own touches are below those of a random player, at full length",
)  # fmt: skip
def _dqn_hit(evidence: Evidence) -> Judgement:
    deep, other = dqn_final(evidence, "touches"), at(evidence, EMPATHIC, "touches")
    blind = float(np.mean(evidence.result(random_job(evidence.plan))["touches"]))
    hits, more = estimate(deep), unpaired(deep, other)
    return grade(more, more.low > 0 and hits.high < blind, hits.low > 0.1,
                 f"It is touched {hits} times an episode, empathic 0.9 {other.mean():.2f} times: the difference is "
                 f"{more}. A random player is touched {blind:.1f} times.")  # fmt: skip


@claim(
    "agnostic-is-closer", "section 5.2", "Agnostic planning comes closer to the optimum than DQN and egocentric 0.9.",
    "final score of agnostic 0.9 less that of DQN-clipped",
    "the interval is above 0, at full length, and against egocentric 0.9 as well",
)  # fmt: skip
def _closer(evidence: Evidence) -> Judgement:
    mine = at(evidence, AGNOSTIC)
    deep, stuck = unpaired(mine, dqn_final(evidence)), paired(mine, at(evidence, EGO_HIGH))
    return grade(deep, deep.low > 0 and stuck.low > 0, stuck.low > 0,
                 f"It is {side(deep, 'points ahead of', 'points behind')} DQN-clipped and "
                 f"{side(stuck, 'ahead of', 'behind')} egocentric 0.9.")  # fmt: skip


# ---- section 5.2: noise ----------------------------------------------------------------------------------------------
@claim(
    "empathic-under-more-noise", "section 5.2",
    "Empathic planning is better than egocentric planning even under noise of a hundred times the variance.",
    "final score of empathic 0.9 with sigma 0.1 less that of egocentric 0.4 with sigma 0.01, paired by seed",
    "the interval is above 0",
)  # fmt: skip
def _more_noise(evidence: Evidence) -> Judgement:
    ahead = paired(at(evidence, noisy(EMPATHIC, 0.1)), at(evidence, noisy(EGO_LOW, 0.01)))
    return grade(ahead, ahead.low > 0, ahead.value > 0, f"It is {side(ahead, 'points ahead', 'points behind')}.")


@claim(
    "noise-breaks-egocentric", "section 5.2",
    "Noise on the rewards harms egocentric planning with a small gamma as soon as there is some.",
    "final score of egocentric 0.4 without noise less with sigma 0.01, paired by seed",
    "the interval is above 0, and more noise does more harm",
)  # fmt: skip
def _breaks(evidence: Evidence) -> Judgement:
    some, much, clean = (at(evidence, noisy(EGO_LOW, sigma)) for sigma in (*SIGMAS, 0.0))
    lost, further = paired(clean, some), paired(some, much)
    return grade(lost, lost.low > 0 and further.low > 0, lost.low > 0,
                 f"With noise of 0.01 it ends {side(lost, 'points lower', 'points higher')}, with 0.1 "
                 f"{side(further, 'lower', 'higher')} than that.")  # fmt: skip


@claim(
    "empathic-is-robust", "section 5.2", "Empathic planning is robust to noise.",
    "final score of empathic 0.9 without noise less with sigma 0.1, paired by seed",
    "the interval is below 5% of the best possible score",
)  # fmt: skip
def _robust(evidence: Evidence) -> Judgement:
    blurred = at(evidence, noisy(EMPATHIC, 0.1))
    lost = paired(at(evidence, EMPATHIC), blurred)
    return grade(lost, lost.high <= ALMOST * BEST, lost.value <= ALMOST * BEST,
                 f"With noise of 0.1 it ends {side(lost, 'points lower', 'points higher')}.")  # fmt: skip


@claim(
    "sight-through-noise", "section 5.2",
    "Under noise an advisor perceives only fruit within a radius that depends on gamma and sigma.",
    "radius of sight, in steps, at gamma 0.9 less at 0.4, both with sigma 0.01, egocentric, paired by seed; no sight "
    "goes further than the maze",
    "the interval is above 0, and more noise shortens the sight at gamma 0.4",
)  # fmt: skip
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
@claim(
    "empathic-after-ten-epochs", "section 6", "Empathic planning robustly learns a nearly optimal policy in 10 epochs.",
    "score of empathic 0.9 over epochs 10 to 14", "the interval is at or above 90% of the best possible score",
    TEN + AFTER_TEN - 1,
)  # fmt: skip
def _ten(evidence: Evidence) -> Judgement:
    if evidence.plan.epochs < TEN:
        raise MissingResult(f"runs of {many(evidence.plan.epochs, 'epoch')} say nothing about what is learned in {TEN}")
    runs = curve(evidence, with_rules(EMPATHIC, evidence.plan))
    score = estimate(runs[:, TEN - 1 : TEN - 1 + AFTER_TEN].mean(axis=1))
    smooth = np.convolve(runs.mean(axis=0), np.ones(AFTER_TEN) / AFTER_TEN, "valid")  # so many epochs each
    there = np.flatnonzero(smooth >= NEAR * BEST)
    when = f"first in the mean of epochs {there[0] + 1} to {there[0] + AFTER_TEN}" if len(there) else "never"
    return grade(score, score.low >= NEAR * BEST, score.value >= 0.8 * BEST,
                 f"By then the score is {score}, {100 * score.value / BEST:.0f}% of the best possible; 90% is reached "
                 f"{when}, and the final score is {estimate(at(evidence, EMPATHIC))}.")  # fmt: skip


@claim(
    "empathic-always-converges", "section 6", "In practice empathic planning converged in every case.",
    "the lowest final score of any seed of empathic 0.9",
    "every seed ends at or above 80% of the best possible score, with noise as well",
)  # fmt: skip
def _converges(evidence: Evidence) -> Judgement:
    *blurred, clear = (float(at(evidence, noisy(EMPATHIC, sigma)).min()) for sigma in (*SIGMAS, 0.0))
    worst = [clear, *blurred]
    return grade(worst[0], min(worst) >= 0.8 * BEST, worst[0] >= 0.8 * BEST,
                 "The lowest seeds end at " + ", ".join(f"{one:.1f}" for one in worst)
                 + " without noise, with 0.01 and with 0.1.")  # fmt: skip


@claim(
    "attractor-free-is-not-optimal", "section 6",
    "Without attractors egocentric planning makes progress, but that does not make it optimal.",
    "share of random attractor-free MDPs (at the bound of theorem 4) in which its policy is below the optimum",
    "it is above 0, though no attractor was found",
)  # fmt: skip
def _free(evidence: Evidence) -> Judgement:
    found = check(evidence, "bound")
    share = float(np.mean(np.array(found["short"]) > 1e-9))
    return grade(share, share > 0 and sum(found["attractors"]) == 0, share > 0,
                 f"The policy is below the optimum in {100 * share:.0f}% of the MDPs.")  # fmt: skip


@claim(
    "bridges-are-avoided", "section 6", "Agnostic planning would not cross a bridge.",
    "probability that the agnostic aggregator steps from the bank onto a bridge of 1 to 5 steps, the mean",
    "0 at every length, while egocentric and empathic planning always cross",
)  # fmt: skip
def _bridges(evidence: Evidence) -> Judgement:
    rows = check(evidence, "bridges")["rows"]
    afraid = [row["crosses"] for row in rows if row["planning"] == "agnostic"]
    bold = [row["crosses"] for row in rows if row["planning"] != "agnostic"]
    shares_changed_row = [str(row["length"]) for row in rows if row["planning"] == "agnostic" and row["crosses"] > 0]
    return grade(float(np.mean(afraid)), max(afraid) == 0 and min(bold) == 1, np.mean(afraid) < np.mean(bold),
                 f"It steps onto "
                 f"{'bridges of length ' + ', '.join(shares_changed_row) if shares_changed_row else 'no bridge'}; the "
                 f"others "
                 f"cross with probability {np.mean(bold):.2f}.")  # fmt: skip


# ---- appendix --------------------------------------------------------------------------------------------------------
claim(
    "four-fruits", "appendix B.2", "Surrounded by four goals, the bound 1/3 on gamma is necessary as well.",
    "distance between the threshold found by the solver and 1/3", "it is below 0.000001",
)(lambda evidence: threshold(evidence, "four-fruits"))  # fmt: skip


@claim(
    "relaxed-bound", "appendix B.2",
    "In the maze nothing gets stuck up to gamma = 1 / (|A| - 2), as an attractor must be able to hold the aggregator.",
    "share of random boards that have a stable attractor, or end stuck, at gamma up to 1/2, the largest",
    "it is 0, and above 0 beyond",
)  # fmt: skip
def _relaxed(evidence: Evidence) -> Judgement:
    rows = shares(evidence)
    below = max(max(row["stable"], row["stuck"]) for row in rows if row["gamma"] <= 0.5 + 1e-12)
    above = max(row["stuck"] for row in rows if row["gamma"] > 0.5 + 1e-12)
    return grade(below, below == 0 and above > 0, below < 0.01, f"Up to 1/2 it is {100 * below:.1f}% of the boards.")


@claim(
    "random-player", "appendix B.2", "A random player scores about -80.",
    "mean score of 1,000 random episodes", "the interval holds -80, or the mean is within 5 of it",
)  # fmt: skip
def _random(evidence: Evidence) -> Judgement:
    score = estimate(evidence.result(random_job(evidence.plan))["score"])
    close = score.low <= -80 <= score.high or abs(score.value + 80) <= 5
    return grade(score, close, abs(score.value + 80) <= 20, f"It scores {score}.")
