"""Claims about plannings and their theory: of the abstract, sections 3 and 4, and what follows from it in Pac-Boy."""

from __future__ import annotations

import numpy as np

from multiadvisor.core.intervals import estimate, paired
from multiadvisor.studies.claims import Judgement, claim, grade
from multiadvisor.studies.paper.attractor_study import resting, shares, traps_job, walks
from multiadvisor.studies.paper.pac_boy_study import AGNOSTIC, BEST, EGO_HIGH, EMPATHIC, final, without_ghosts
from multiadvisor.studies.paper.theory_checks import EPSILONS, SETTLED, aggregation_jobs, check, learning_jobs
from multiadvisor.studies.paper.tours import WALKS
from multiadvisor.studies.study import Evidence

EXACT = 1e-9  # numbers of the exact solver that are closer are equal
FOUND = 1e-6  # a threshold found by bisection
CLOSE = 0.02  # of the mean value: learned values that are closer to the exact ones have reached them
NEAR_TOUR = 1 / 0.9  # times the steps of a near-optimal tour: as near-optimal scores are at least 90% of the best


def threshold(evidence: Evidence, task: str) -> Judgement:
    """How far the gamma from which on the solver finds attractors in an example is from the paper's."""
    rows = [row for row in check(evidence, "thresholds")["rows"] if row["task"] == task]
    if any(row["found"] is None for row in rows):
        return grade(float("inf"), False, False, f"The solver finds no attractor in {task} at any gamma.")
    apart = max(abs(row["found"] - row["paper"]) for row in rows)
    listed = ", ".join(f"{row['found']:.4f} (the paper: {row['paper']:.4f})" for row in rows)
    return grade(apart, apart <= FOUND, apart <= 0.01, f"The solver finds attractors from {listed} on.")


# ---- abstract --------------------------------------------------------------------------------------------------------
@claim("planning-is-critical")
def _critical(evidence: Evidence) -> Judgement:
    apart = paired(final(evidence, EMPATHIC), final(evidence, EGO_HIGH))
    return grade(apart, apart.low > 0.1 * BEST, apart.low > 0, f"The difference is {apart} points of {BEST}.")


@claim("egocentric-overestimates")
def _overestimates(evidence: Evidence) -> Judgement:
    found = check(evidence, "inversion")
    over, agreed = estimate(found["over"]), max(found["agreed"])
    return grade(over, over.low > 0 and agreed <= EXACT, over.low > 0,
                 f"The excess is {over} where advisors disagree, and up to {agreed:.2g} where all agree.")  # fmt: skip


@claim("agnostic-and-danger")
def _danger(evidence: Evidence) -> Judgement:
    lost = [final(evidence, without_ghosts(s), "terminated") - final(evidence, s, "terminated")
            for s in (AGNOSTIC, EMPATHIC)]  # fmt: skip
    more = paired(*lost)
    return grade(more, more.low > 0.1, more.low > 0,
                 f"Ghosts cost agnostic planning {lost[0].mean():.2f} of its finished episodes and empathic planning "
                 f"{lost[1].mean():.2f}: a difference of {more}.")  # fmt: skip


# ---- section 3 -------------------------------------------------------------------------------------------------------
@claim("theorem-1")
def _theorem_1(evidence: Evidence) -> Judgement:
    runs = [row["errors"] for job in learning_jobs(evidence.plan) for row in evidence.result(job)["rows"]]
    rows = {name: [row["errors"] for row in evidence.result(job)["rows"]] for name, job in aggregation_jobs().items()}
    worst = max(rows, key=lambda name: max(errors[-1] for errors in rows[name]))
    last, under = estimate([errors[-1] for errors in runs]), max(errors[-1] for errors in rows[worst])
    falls = all(np.diff(errors).max() < 0 for errors in [*runs, *(one for each in rows.values() for one in each)])
    return grade(last, last.high < CLOSE and under < CLOSE and falls, last.value < runs[0][0],
                 f"The remaining distance is {last}, under {len(rows)} aggregations at most {under:.3f} ({worst}); "
                 f"{'all' if falls else 'not all'} runs came closer all the time.")  # fmt: skip


@claim("fixed-point-of-any-algorithm")
def _algorithms(evidence: Evidence) -> Judgement:
    played = [row["errors"][-1] for job in aggregation_jobs().values() for row in evidence.result(job)["rows"]]
    blind = [row["apart"] for row in check(evidence, "algorithms")["rows"]]
    apart = max(*played, *blind)
    return grade(apart, apart < CLOSE, apart < 5 * CLOSE,
                 f"By control they are up to {max(played):.3f} apart, by random play up to {max(blind):.3f}."
                 )  # fmt: skip


# ---- section 4.1: egocentric planning --------------------------------------------------------------------------------
@claim("max-sum-inversion")
def _inversion(evidence: Evidence) -> Judgement:
    found = check(evidence, "inversion")
    least = min(*found["least"], *found["backup"])
    share = np.mean(np.array(found["backup"]) >= -EXACT)
    return grade(least, least >= -EXACT, bool(share > 0.9), f"The smallest excess is {least:.3g}, a shortfall.")


claim("two-goals")(lambda evidence: threshold(evidence, "two-goal"))


@claim("no-matter-of-ties")
def _no_ties(evidence: Evidence) -> Judgement:
    wait, *goals = check(evidence, "thresholds")["unequal"]
    return grade(wait - max(goals), wait > max(goals) + EXACT, False,
                 f"Waiting is worth {wait:.3f} and the better goal {max(goals):.3f}.")  # fmt: skip


@claim("theorem-3")
def _theorem_3(evidence: Evidence) -> Judgement:
    found = check(evidence, "scheduling")
    seen = (
        f"{found['attractors']} attractors in {found['cases']} cases; advisors not progressive: {found['regressions']}."
    )
    return grade(found["attractors"], found["attractors"] == found["regressions"] == 0, found["attractors"] == 0, seen)


@claim("navigation-is-not-progressive")
def _navigation(evidence: Evidence) -> Judgement:
    found = np.array(check(evidence, "scheduling")["navigation"])
    share = float((found > 0).mean())
    return grade(share, share == 1.0, share > 0.5, f"It is so in {100 * share:.0f}% of the cases.")


claim("three-fruits")(lambda evidence: threshold(evidence, "three-fruits"))


@claim("theorem-4")
def _theorem_4(evidence: Evidence) -> Judgement:
    found = check(evidence, "bound")
    there, beyond = sum(found["attractors"]), sum(found["beyond"])
    boards = [row["attractor"] for row in shares(evidence) if row["gamma"] <= 1 / 3 + 1e-12]
    worst = max(boards)
    return grade(there + worst, there == 0 and worst == 0 and all(found["premises"]) and beyond > 0, worst == 0,
                 f"{there} attractors at the bound in random MDPs ({beyond} at 0.9), and up to {100 * worst:.1f}% of "
                 "boards have one.")  # fmt: skip


@claim("attractors-hold")
def _hold(evidence: Evidence) -> Judgement:
    rows = shares(evidence)
    high = min(rows, key=lambda row: abs(row["gamma"] - 0.9))["stuck"]
    low = max(row["stuck"] for row in rows if row["gamma"] <= 1 / 3 + 1e-12)
    return grade(high, high > 0.5 and low == 0, high > low, f"{100 * high:.0f}% at 0.9, {100 * low:.1f}% up to 1/3.")


@claim("theorem-2")
def _theorem_2(evidence: Evidence) -> Judgement:
    agree, one = check(evidence, "signs")["agree"], check(evidence, "signs")["example"]
    inside, other = agree["premise"], agree["elsewhere"]
    states = [*inside, *other, one["attractor"] == one["stays"]]
    share = float(np.mean(states))
    return grade(share, share == 1.0, all(inside),
                 f"They agree in {sum(inside)} of {len(inside)} states in which every advisor expects at least 0, and "
                 f"in {sum(other)} of {len(other)} others. In a state whose one action ends, pays 1 and costs another "
                 f"advisor 0.5, it is worth {one['ends']:.2f} against {one['bound']:.2f}: no attractor by the "
                 f"definition. Once it may stay, staying is worth {one['staying']:.2f}, as who would pay waits for "
                 "ever. The paper's proof has the premise that staying changes nobody's own values.")  # fmt: skip


@claim("theorem-2-with-its-premise")
def _theorem_2_premise(evidence: Evidence) -> Judgement:
    found, inside = check(evidence, "staying"), check(evidence, "signs")["agree"]["premise"]
    agree = float(min(np.mean(found["agree"]), np.mean(inside)))
    return grade(agree, agree == 1.0 and found["attractors"] > 0, agree > 0.95,
                 f"They agree in {100 * agree:.1f}% of {found['states'] + len(inside)} states; {found['attractors']} "
                 "attractors.")  # fmt: skip


@claim("randomness-does-not-help")
def _randomness(evidence: Evidence) -> Judgement:
    found = check(evidence, "randomness")
    still, *mixed = found["finished"]
    listed = ", ".join(f"{100 * share:.0f}% with epsilon {epsilon:g}"
                       for share, epsilon in zip(mixed, EPSILONS[1:], strict=True))  # fmt: skip
    best, earned = max(mixed), max(found["earned"])
    trapped = best < 0.5 and found["low"] >= 0.95
    return grade(best, trapped and earned < 0.5, trapped,
                 f"It finishes {100 * still:.0f}% of the boards without randomness, {listed}; gamma 0.4 finishes "
                 f"{100 * found['low']:.0f}%. Where two goals end the episode at once, it earns up to "
                 f"{100 * earned:.0f}% of the best: a random action is soon one of those that end it.")  # fmt: skip


@claim("theorem-3-needs-all-goals")
def _open_goals(evidence: Evidence) -> Judgement:
    found = check(evidence, "unfinished")
    share, trapped = float(np.mean(np.array(found["regressions"]) > 0)), sum(found["attractors"])
    return grade(share, share == 1.0 and trapped > 0, share > 0.5,
                 f"It is so in {100 * share:.0f}% of {len(found['regressions'])} cases; {trapped} have an attractor."
                 )  # fmt: skip


@claim("stochastic-navigation")
def _stochastic(evidence: Evidence) -> Judgement:
    found = check(evidence, "stochastic")
    there, beyond = sum(found["attractors"]), found["beyond"]
    listed = " and ".join(f"{count} with {slip:g}" for count, slip in zip(beyond, found["slips"], strict=True))
    return grade(there, there == 0 and min(beyond) > 0, there < 0.01 * found["states"],
                 f"{there} attractors at the bound in {found['states']} states for each slip; at 0.9 {listed}."
                 )  # fmt: skip


# ---- section 4.2: agnostic planning ----------------------------------------------------------------------------------
@claim("agnostic-local-is-global")
def _local_is_global(evidence: Evidence) -> Judgement:
    apart = max(check(evidence, "agnostic")["apart"])
    return grade(apart, apart <= EXACT, apart <= 1e-3, f"They are up to {apart:.3g} apart.")


@claim("agnostic-has-no-attractor")
def _agnostic_free(evidence: Evidence) -> Judgement:
    share = evidence.result(traps_job(evidence.plan))["agnostic_finished"]
    return grade(share, share == 1.0, share > 0.9, f"{100 * share:.1f}% of the episodes came to their end.")


@claim("agnostic-beats-random")
def _beats_random(evidence: Evidence) -> Judgement:
    found = check(evidence, "agnostic")
    gain, worst = min(found["gain"]), max(found["short"])
    return grade(gain, gain >= -EXACT and worst > 0.1, gain >= -EXACT,
                 f"The smallest gain is {gain:.3g}; at worst {100 * worst:.0f}% of the optimum is lost.")  # fmt: skip


# ---- section 4.3: empathic planning ----------------------------------------------------------------------------------
@claim("theorem-5")
def _theorem_5(evidence: Evidence) -> Judgement:
    apart = np.array(check(evidence, "empathic")["apart"])
    return grade(float(apart.max()), bool(apart.max() <= EXACT), bool((apart <= EXACT).mean() > 0.9),
                 f"They are up to {apart.max():.3g} apart.")  # fmt: skip


@claim("no-guarantee-with-local-states")
def _no_guarantee(evidence: Evidence) -> Judgement:
    planned, learned = float(np.mean(check(evidence, "empathic")["settled"])), check(evidence, "td")
    kind, own = (float(np.mean(np.array(learned[name]) < SETTLED)) for name in ("empathic", "egocentric"))
    return grade(planned, planned < 1.0 and kind < 1.0 and own == 1.0, planned < 1.0 or kind < 1.0,
                 f"Planning converges in {100 * planned:.0f}% of the MDPs, temporal differences in {100 * kind:.0f}%; "
                 f"egocentric ones in {100 * own:.0f}%.")  # fmt: skip


# ---- what follows in section 5 from the theory -----------------------------------------------------------------------
@claim("resting-places")
def _resting(evidence: Evidence) -> Judgement:
    on, blind = estimate(resting(evidence, "on")), float(resting(evidence, "chance").mean())
    return grade(on, on.low > max(0.5, 3 * blind), on.low > 2 * blind,
                 f"Pac-Boy spends {100 * on.value:.0f}% [{100 * on.low:.0f}, {100 * on.high:.0f}] of its late steps on "
                 f"an attractor or next to one, where blind choice would have it {100 * blind:.0f}% of the time. The "
                 "solver knows nothing of ghosts, nor of what was learned.")  # fmt: skip


@claim("closest-first-is-near-optimal")
def _closest(evidence: Evidence) -> Judgement:
    found = walks(evidence)
    walked = np.array(found["walks"][WALKS.index(("sum", 0.4))], float)
    ratio = estimate(walked / np.array(found["tours"], float))
    return grade(ratio, ratio.high < NEAR_TOUR, ratio.high < 1.25, f"They take {ratio} times the steps of the tour.")


# ---- appendix --------------------------------------------------------------------------------------------------------
@claim("assumption-1-in-pac-boy")
def _markov(evidence: Evidence) -> Judgement:
    rows = [row for row in check(evidence, "markov")["rows"] if row["fruits"] == 2]
    fruit = [row["markov"] for row in rows if row["advisor"].startswith("fruit")]
    share, broken = float(np.mean([row["markov"] for row in rows])), [r["advisor"] for r in rows if not r["markov"]]
    return grade(share, share == 1.0, all(fruit),
                 f"It is not so of {len(broken)} of {len(rows)} advisors: {', '.join(broken) or 'none'}. With the last "
                 "fruit the episode ends, and a ghost's advisor does not see how many are left.")  # fmt: skip


@claim("every-action-can-be-cancelled")
def _cancelled(evidence: Evidence) -> Judgement:
    found = check(evidence, "cancelling")
    fruits = found["advisors"] - found["haunted"]
    able = fruits * (not found["fruits"]) + found["haunted"] * (not found["ghosts"])
    share = able / found["advisors"]
    return grade(share, share == 1.0, not found["fruits"] and found["cells"] == 1.0,
                 f"{100 * found['cells']:.0f}% of the moves from cells can be cancelled, and it is so for {able} of "
                 f"{found['advisors']} advisors. {' '.join(f'{one}.' for one in found['ghosts'][1:])}")  # fmt: skip
