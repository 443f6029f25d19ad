"""Claims of the abstract and of section 4: plannings and their theory, judged by the exact solver."""

from __future__ import annotations

import numpy as np

from multiadvisor.core.intervals import estimate, paired
from multiadvisor.studies.claims import Judgement, claim, grade
from multiadvisor.studies.paper.attractor_study import resting, shares, traps_job
from multiadvisor.studies.paper.pac_boy_study import AGNOSTIC, BEST, EGO_HIGH, EMPATHIC, at, final, without_ghosts
from multiadvisor.studies.paper.theory_checks import check, learning_jobs
from multiadvisor.studies.study import Evidence

EXACT = 1e-9  # numbers of the exact solver that are closer are equal
FOUND = 1e-6  # a threshold found by bisection


def threshold(evidence: Evidence, task: str) -> Judgement:
    """How far the gamma from which on the solver finds attractors in an example is from the paper's."""
    rows = [row for row in check(evidence, "thresholds")["rows"] if row["task"] == task]
    if any(row["found"] is None for row in rows):
        return grade(float("inf"), False, False, f"The solver finds no attractor in {task} at any gamma.")
    apart = max(abs(row["found"] - row["paper"]) for row in rows)
    listed = ", ".join(f"{row['found']:.4f} (the paper: {row['paper']:.4f})" for row in rows)
    return grade(apart, apart <= FOUND, apart <= 0.01, f"The solver finds attractors from {listed} on.")


# ---- abstract --------------------------------------------------------------------------------------------------------
@claim(
    "planning-is-critical", "abstract", "How the advisors plan locally decides how well the whole system does.",
    "final Pac-Boy score of empathic less egocentric planning, both with gamma 0.9, paired by seed",
    "the whole interval is above a tenth of the best possible score",
)  # fmt: skip
def _critical(evidence: Evidence) -> Judgement:
    apart = paired(at(evidence, EMPATHIC), at(evidence, EGO_HIGH))
    return grade(apart, apart.low > 0.1 * BEST, apart.low > 0, f"The difference is {apart} points of {BEST}.")


@claim(
    "egocentric-overestimates", "abstract",
    "Egocentric planning overestimates the values of states in which the advisors disagree.",
    "mean excess of the summed egocentric value over the optimum where no action suits all advisors, as a part of the "
    "mean optimal value, over random MDPs",
    "the interval is above 0, and the excess is 0 where all advisors are of one mind",
)  # fmt: skip
def _overestimates(evidence: Evidence) -> Judgement:
    found = check(evidence, "inversion")
    over, agreed = estimate(found["over"]), max(found["agreed"])
    return grade(over, over.low > 0 and agreed <= EXACT, over.low > 0,
                 f"The excess is {over} where advisors disagree, and up to {agreed:.2g} where all agree.")  # fmt: skip


@claim(
    "agnostic-and-danger", "abstract", "Agnostic planning is inefficient where there is danger.",
    "share of episodes with all fruit eaten that agnostic planning loses to the ghosts (without less with them), less "
    "what empathic planning loses to them, paired by seed",
    "the whole interval is above 0.1",
)  # fmt: skip
def _danger(evidence: Evidence) -> Judgement:
    plan = evidence.plan
    lost = [
        final(evidence, without_ghosts(s, plan), "terminated") - at(evidence, s, "terminated")
        for s in (AGNOSTIC, EMPATHIC)
    ]  # fmt: skip
    more = paired(*lost)
    return grade(more, more.low > 0.1, more.low > 0,
                 f"Ghosts cost agnostic planning {lost[0].mean():.2f} of its finished episodes and empathic planning "
                 f"{lost[1].mean():.2f}: a difference of {more}.")  # fmt: skip


# ---- section 4.1: egocentric planning --------------------------------------------------------------------------------
@claim(
    "theorem-1", "section 4.1",
    "Advisors that plan egocentrically or agnostically and learn off-policy converge to fixed local values.",
    "mean distance of learned from exact values after 4 million transitions with a decaying learning rate, as part of "
    "the mean value, on random MDPs",
    "the interval is below 0.02, and every run comes closer from one stretch to the next",
)  # fmt: skip
def _theorem_1(evidence: Evidence) -> Judgement:
    runs = [row["errors"] for job in learning_jobs(evidence.plan) for row in evidence.result(job)["rows"]]
    last, falls = estimate([errors[-1] for errors in runs]), all(np.diff(errors).max() < 0 for errors in runs)
    return grade(last, last.high < 0.02 and falls, last.value < runs[0][0],
                 f"The remaining distance is {last}; {'all' if falls else 'not all'} runs came closer all the time."
                 )  # fmt: skip


@claim(
    "max-sum-inversion", "section 4.1",
    "Summed egocentric values are never below reward plus discounted best summed value of the next state, nor below "
    "the optimum.",
    "the smallest excess found in any state, action and random MDP",
    "it is not negative, up to rounding",
)  # fmt: skip
def _inversion(evidence: Evidence) -> Judgement:
    found = check(evidence, "inversion")
    least = min(*found["least"], *found["backup"])
    share = np.mean(np.array(found["backup"]) >= -EXACT)
    return grade(least, least >= -EXACT, bool(share > 0.9), f"The smallest excess is {least:.3g}, a shortfall.")


claim(
    "two-goals", "section 4.1",
    "With two goals that end the episode, waiting is chosen for ever above gamma = r1 / (r1 + r2) and r2 / (r1 + r2).",
    "largest distance between the threshold found by the solver and the formula, four pairs of rewards",
    "it is below 0.000001",
)(lambda evidence: threshold(evidence, "two-goal"))  # fmt: skip


@claim(
    "no-matter-of-ties", "section 4.1",
    "Getting stuck does not come from actions that are equally good: it happens between unequal goals as well.",
    "value of waiting less that of the better goal, rewards 1 and 2, gamma 0.9",
    "it is above 0",
)  # fmt: skip
def _no_ties(evidence: Evidence) -> Judgement:
    wait, *goals = check(evidence, "thresholds")["unequal"]
    return grade(wait - max(goals), wait > max(goals) + EXACT, False,
                 f"Waiting is worth {wait:.3f} and the better goal {max(goals):.3f}.")  # fmt: skip


@claim(
    "theorem-2", "section 4.1",
    "A state is an attractor exactly if the egocentric aggregator would stay in it, were it possible.",
    "share of states of random MDPs with rewards of at least 0 in which definition and behaviour agree, once every "
    "state has an action to stay",
    "all of them, some of them attractors",
)  # fmt: skip
def _theorem_2(evidence: Evidence) -> Judgement:
    found = check(evidence, "staying")
    agree = float(np.mean(found["agree"]))
    return grade(agree, agree == 1.0 and found["attractors"] > 0, agree > 0.95,
                 f"They agree in {100 * agree:.1f}% of {found['states']} states; {found['attractors']} attractors."
                 )  # fmt: skip


@claim(
    "theorem-3", "section 4.1", "Where all advisors are progressive, as in resource scheduling, there is no attractor.",
    "attractors found in four shops at 13 gammas",
    "none, and every advisor is progressive",
)  # fmt: skip
def _theorem_3(evidence: Evidence) -> Judgement:
    found = check(evidence, "scheduling")
    seen = (
        f"{found['attractors']} attractors in {found['cases']} cases; advisors not progressive: {found['regressions']}."
    )
    return grade(found["attractors"], found["attractors"] == found["regressions"] == 0, found["attractors"] == 0, seen)


@claim(
    "navigation-is-not-progressive", "section 4.1",
    "In navigation advisors are not progressive: going away from a goal is worse than staying.",
    "share of navigation examples and gammas with an advisor that is not progressive",
    "all of them",
)  # fmt: skip
def _navigation(evidence: Evidence) -> Judgement:
    found = np.array(check(evidence, "scheduling")["navigation"])
    share = float((found > 0).mean())
    return grade(share, share == 1.0, share > 0.5, f"It is so in {100 * share:.0f}% of the cases.")


claim(
    "three-fruits", "section 4.1",
    "Between three fruits the aggregator runs into the wall for ever if gamma is above 1/2.",
    "distance between the threshold found by the solver and 1/2", "it is below 0.000001",
)(lambda evidence: threshold(evidence, "three-fruits"))  # fmt: skip


@claim(
    "theorem-4", "section 4.1",
    "Where actions can be cancelled and no reward is negative, there is no attractor up to gamma = 1 / (|A| - 1).",
    "attractors at that gamma in random MDPs of this kind, and share of random Pac-Boy boards with one up to it",
    "none of either, though there are some at 0.9",
)  # fmt: skip
def _theorem_4(evidence: Evidence) -> Judgement:
    found = check(evidence, "bound")
    there, beyond = sum(found["attractors"]), sum(found["beyond"])
    boards = [row["attractor"] for row in shares(evidence) if row["gamma"] <= 1 / 3 + 1e-12]
    worst = max(boards)
    return grade(there + worst, there == 0 and worst == 0 and all(found["premises"]) and beyond > 0, worst == 0,
                 f"{there} attractors at the bound in random MDPs ({beyond} at 0.9), and up to {100 * worst:.1f}% of "
                 "boards have one.")  # fmt: skip


@claim(
    "attractors-hold", "section 4.1",
    "Attractors are real: an egocentric system with a high gamma does not go on to its goals even without ghosts.",
    "share of greedy episodes with exact values on random boards that end stuck at gamma 0.9",
    "more than half of them, and none up to gamma 1/3",
)  # fmt: skip
def _hold(evidence: Evidence) -> Judgement:
    rows = shares(evidence)
    high = min(rows, key=lambda row: abs(row["gamma"] - 0.9))["stuck"]
    low = max(row["stuck"] for row in rows if row["gamma"] <= 1 / 3 + 1e-12)
    return grade(high, high > 0.5 and low == 0, high > low, f"{100 * high:.0f}% at 0.9, {100 * low:.1f}% up to 1/3.")


# ---- section 4.2: agnostic planning ----------------------------------------------------------------------------------
@claim(
    "agnostic-local-is-global", "section 4.2", "Agnostic planning by local advisors is the same as planned globally.",
    "largest distance between the sum of local and the global agnostic values, random MDPs",
    "it is 0 up to rounding",
)  # fmt: skip
def _local_is_global(evidence: Evidence) -> Judgement:
    apart = max(check(evidence, "agnostic")["apart"])
    return grade(apart, apart <= EXACT, apart <= 1e-3, f"They are up to {apart:.3g} apart.")


@claim(
    "agnostic-has-no-attractor", "section 4.2", "Agnostic planning has no attractors.",
    "share of greedy episodes with exact agnostic values on random boards without ghosts that come to their end",
    "all of them",
)  # fmt: skip
def _agnostic_free(evidence: Evidence) -> Judgement:
    share = evidence.result(traps_job(evidence.plan))["agnostic_finished"]
    return grade(share, share == 1.0, share > 0.9, f"{100 * share:.1f}% of the episodes came to their end.")


@claim(
    "agnostic-beats-random", "section 4.2",
    "Acting greedily on agnostic values is at least as good as acting at random, and may be far from optimal.",
    "smallest gain over the random policy in any state of random MDPs",
    "it is not negative, while the value falls short of the optimum somewhere by a tenth",
)  # fmt: skip
def _beats_random(evidence: Evidence) -> Judgement:
    found = check(evidence, "agnostic")
    gain, worst = min(found["gain"]), max(found["short"])
    return grade(gain, gain >= -EXACT and worst > 0.1, gain >= -EXACT,
                 f"The smallest gain is {gain:.3g}; at worst {100 * worst:.0f}% of the optimum is lost.")  # fmt: skip


# ---- section 4.3: empathic planning ----------------------------------------------------------------------------------
@claim(
    "theorem-5", "section 4.3", "With full states empathic planning reaches the global optimum.",
    "largest distance between the summed empathic and the optimal values, random MDPs",
    "it is 0 up to rounding",
)  # fmt: skip
def _theorem_5(evidence: Evidence) -> Judgement:
    apart = np.array(check(evidence, "empathic")["apart"])
    return grade(float(apart.max()), bool(apart.max() <= EXACT), bool((apart <= EXACT).mean() > 0.9),
                 f"They are up to {apart.max():.3g} apart.")  # fmt: skip


@claim(
    "no-guarantee-with-local-states", "section 4.3",
    "With local states nothing guarantees that empathic planning converges.",
    "share of random MDPs with blurred local states in which planning with an estimate of the aggregator settles",
    "it is below 1: there are counterexamples",
)  # fmt: skip
def _no_guarantee(evidence: Evidence) -> Judgement:
    share = float(np.mean(check(evidence, "empathic")["settled"]))
    return grade(share, share < 1.0, False, "It settled in every case that was tried.")


# ---- what follows in section 5 from the theory -----------------------------------------------------------------------
@claim(
    "resting-places", "section 5.2",
    "What stops the egocentric agent in Pac-Boy are the attractors of the theory.",
    "share of late steps on, or next to, an attractor of the exact solver for the same board without its ghosts",
    "the interval is above one half, and above three times what a cell chosen blindly would have",
)  # fmt: skip
def _resting(evidence: Evidence) -> Judgement:
    on, blind = estimate(resting(evidence, "on")), float(resting(evidence, "chance").mean())
    return grade(on, on.low > max(0.5, 3 * blind), on.low > 2 * blind,
                 f"Pac-Boy spends {100 * on.value:.0f}% [{100 * on.low:.0f}, {100 * on.high:.0f}] of its late steps on "
                 f"an attractor or next to one, where blind choice would have it {100 * blind:.0f}% of the time. The "
                 "solver knows nothing of ghosts, nor of what was learned.")  # fmt: skip
