"""The value-function experiment: exact values against brute force, the rules of play, what the targets share."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from multiadvisor.errors import BadInput
from multiadvisor.studies.paper import value_function as vf
from multiadvisor.studies.reproduction import reproduce
from multiadvisor.studies.study import Evidence, Plan
from refusal import refused

regression = pytest.importorskip("multiadvisor.learners.dqn.regression", exc_type=BadInput)
DEFAULT, LITERAL = vf.READINGS["default"], vf.READINGS["literal"]


def distance(one, other):
    return abs(one // 5 - other // 5) + abs(one % 5 - other % 5)


def lengths(cell, fruits):
    """Distances at which each fruit is reached, for every order of the fruits."""
    for order in itertools.permutations(fruits):
        stops = (cell, *order)
        yield np.cumsum([distance(a, b) for a, b in itertools.pairwise(stops)])


def brute(target, cell, fruits, gamma):
    """The paper's formulas, word for word."""
    if not fruits:
        return 0.0
    if target == vf.TSP:
        return -min(steps[-1] for steps in lengths(cell, fruits))
    if target == vf.RL:
        return max((gamma**steps).sum() for steps in lengths(cell, fruits))
    return sum(gamma ** distance(cell, fruit) for fruit in fruits)


def fruits_of(states, k):
    return [int(place) for i, place in enumerate(states.places[k]) if states.left[k] >> i & 1]


def starts_of(cell, places, left=31):
    return vf.States(np.array([cell]), np.array([places]), np.array([left]))


# ---- values ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", [vf.TSP, vf.RL, vf.SUMMED])
@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("reading", [DEFAULT, LITERAL], ids=["default", "literal"])
def test_values_are_those_of_the_best_permutation(target, gamma, reading):
    states = vf.training_states(7, reading)
    few = vf.States(states.cell[:60], states.places[:60], states.left[:60] & (15 if reading is DEFAULT else 31))
    found = vf.targets(target, few, gamma)[:, 0]
    wanted = [brute(target, int(few.cell[k]), fruits_of(few, k), gamma) for k in range(60)]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_closed_forms():
    line = np.array([[1, 2, 3, 4, 9]])  # from cell 0 along the top row, then down
    gamma = 0.7
    assert vf.tours(line, None)[0, 0, 31] == -5
    assert vf.tours(line, gamma)[0, 0, 31] == pytest.approx(sum(gamma**d for d in range(1, 6)))
    # walking along a line, nobody has to choose: the return is the egocentric one, and one fruit always is
    assert vf.egocentric(line, gamma)[0, 0, 31] == pytest.approx(vf.tours(line, gamma)[0, 0, 31])
    for fruit in range(5):
        alone = gamma ** vf.DISTANCE[:, line[0, fruit]]
        np.testing.assert_allclose(vf.tours(line, gamma)[0, :, 1 << fruit], alone)
        np.testing.assert_allclose(vf.egocentric(line, gamma)[0, :, 1 << fruit], alone)
    assert not vf.tours(line, gamma)[..., 0].any()


def test_the_vector_has_a_channel_for_each_cell_and_sums_to_the_summed_target():
    states = vf.training_states(3, DEFAULT)
    vector, summed = (vf.targets(target, states, 0.6) for target in (vf.VECTOR, vf.SUMMED))
    assert vector.shape == (1000, 25)
    np.testing.assert_allclose(vector.sum(axis=1, keepdims=True), summed)
    k = int(np.flatnonzero(states.left == 31)[0])
    for cell in range(25):
        there = cell in fruits_of(states, k)
        assert vector[k, cell] == pytest.approx(0.6 ** distance(int(states.cell[k]), cell) if there else 0.0)


def test_the_input_is_fruits_then_agent():
    x = vf.inputs(starts_of(24, [3, 5, 7, 9, 11], left=0b00101))
    assert np.flatnonzero(x[0]).tolist() == [3, 7, 25 + 24]


# ---- states ----------------------------------------------------------------------------------------------------------
def test_states_of_the_default_reading():
    states = vf.training_states(0, DEFAULT)
    counts = np.bincount(vf.BITS[states.left].sum(axis=1), minlength=6)
    assert len(states.cell) == 1000
    assert counts.min() > 120  # uniform on 0 .. 5: about 167 each
    assert all(len(set(places)) == 5 for places in states.places.tolist())
    assert not (states.places == states.cell[:, None]).any()


def test_states_of_the_literal_reading():
    states = vf.training_states(0, LITERAL)
    assert (states.left == 31).all()
    share = (states.places == states.cell[:, None]).any(axis=1).mean()
    assert 0.14 < share < 0.26  # a fruit lies on 5 of 25 cells


def test_starts_are_fixed_with_all_fruits_and_the_agent_off_them():
    one, other = vf.fixed_starts(300), vf.fixed_starts(300)
    assert len(one.cell) == 300
    assert (one.left == 31).all()
    assert not (one.places == one.cell[:, None]).any()
    for key in ("cell", "places", "left"):
        np.testing.assert_array_equal(getattr(one, key), getattr(other, key))


# ---- play ------------------------------------------------------------------------------------------------------------
def test_exact_shortest_tours_take_as_many_steps_as_they_say():
    starts = vf.fixed_starts(300)
    episodes = vf.play_exact(vf.TSP, 1.0, starts, DEFAULT)
    np.testing.assert_array_equal(episodes["length"], -vf.targets(vf.TSP, starts, 1.0)[:, 0])
    assert episodes["success"].all()
    assert (episodes["fruits"] == 5).all()


@pytest.mark.parametrize("gamma", [0.3, 0.9])
def test_exact_play_for_the_return_earns_it(gamma):
    """Step by step with brute-force values, on a few starts."""
    starts = vf.deal(np.random.default_rng(5), 6)
    episodes = vf.play_exact(vf.RL, gamma, starts, DEFAULT)
    for k in range(6):
        cell, left, earned, step = int(starts.cell[k]), fruits_of(starts, k), 0.0, 0
        promised = brute(vf.RL, cell, left, gamma)
        while left:
            options = [
                to for to in (cell - 5, cell + 5, cell - 1, cell + 1) if 0 <= to < 25 and distance(cell, to) == 1
            ]
            worth = [(to in left) + brute(vf.RL, to, [fruit for fruit in left if fruit != to], gamma) for to in options]
            cell = next(to for to, one in zip(options, worth, strict=True) if one >= max(worth) - vf.TIE)
            step += 1
            earned += gamma**step * (cell in left)
            left = [fruit for fruit in left if fruit != cell]
        assert episodes["length"][k] == step
        assert earned == pytest.approx(promised)


def test_exact_values_play_alike_in_both_readings():
    starts = vf.fixed_starts(100)
    for target, gamma in ((vf.TSP, 1.0), (vf.RL, 0.5), (vf.EGOCENTRIC, 0.9)):
        one, other = (vf.play_exact(target, gamma, starts, reading) for reading in (DEFAULT, LITERAL))
        np.testing.assert_array_equal(one["length"], other["length"])


def flat(to, left):
    return np.zeros(to.shape)


@pytest.mark.parametrize(("cell", "fruit", "steps"), [(12, 7, 1), (7, 22, 50), (0, 5, 1), (20, 0, 4), (24, 4, 4)])
def test_the_first_best_move_is_north_then_south(cell, fruit, steps):
    """With equal values the agent goes north until the wall, and from there south and north for ever."""
    places = [fruit, *[one for one in (3, 8, 13, 18) if one != fruit]]
    episodes = vf.play(starts_of(cell, places, left=1), flat, rewarded=False)
    assert episodes["length"].tolist() == [steps]
    assert episodes["success"].tolist() == [steps < 50]
    assert episodes["fruits"].tolist() == [5 if steps < 50 else 4]


def test_west_comes_before_east():
    """Both sides are equally good here, and better than the rows above and below."""
    values = np.full(25, -1.0)
    values[[11, 13]] = 0.0
    for fruit, at_once in ((11, True), (13, False)):
        episodes = vf.play(starts_of(12, [fruit, 0, 1, 2, 3], left=1), lambda to, left: values[to], rewarded=False)
        assert (episodes["length"][0] == 1) == at_once


def test_a_reward_counts_unless_told_otherwise():
    side = starts_of(12, [13, 0, 1, 2, 3], left=1)
    assert vf.play(side, flat, rewarded=True)["length"].tolist() == [1]
    assert vf.play(side, flat, rewarded=False)["length"].tolist() == [50]
    assert vf.play(side, flat, rewarded=True, after=False)["length"].tolist() == [50]  # the literal reading has none


def test_the_literal_reading_sees_the_fruit_it_steps_on():
    seen = []

    def value(to, left):
        seen.append((to.copy(), left.copy()))
        return np.zeros(to.shape)

    for after in (True, False):
        vf.play(starts_of(12, [7, 0, 1, 2, 3], left=1), value, rewarded=False, after=after)
    assert seen[0][1].tolist() == [[0, 1, 1, 1]]
    assert seen[1][1].tolist() == [[1, 1, 1, 1]]


def test_an_episode_of_exactly_fifty_steps_is_a_success():
    """49 steps between the top two cells of a column, then the value sends it aside, onto the fruit."""
    step = itertools.count(1)

    def value(to, left):
        return (to == 6) * (1.0 if next(step) == 50 else -1.0)

    episodes = vf.play(starts_of(0, [6, 20, 21, 22, 23], left=1), value, rewarded=False)
    assert episodes["length"].tolist() == [50]
    assert episodes["success"].tolist() == [True]


def test_attractors_catch_the_exact_egocentric_player():
    starts = vf.fixed_starts(300)
    low, high = (vf.play_exact(vf.EGOCENTRIC, gamma, starts, DEFAULT) for gamma in (0.3, 0.9))
    assert low["success"].all()
    assert high["length"].mean() > 1.5 * low["length"].mean()
    assert (high["length"][~high["success"]] == 50).all()


def test_a_network_plays_by_the_sum_of_its_channels():
    """A stand-in for a network that knows the vector exactly plays like the exact values."""
    starts = vf.fixed_starts(50)

    def know(bits):
        fruits, agent = bits[:, :25], bits[:, 25:]
        return fruits * (0.25 ** (agent @ vf.DISTANCE))

    episodes = vf.play_network(know, vf.VECTOR, starts, DEFAULT)
    exact = vf.play_exact(vf.EGOCENTRIC, 0.25, starts, DEFAULT)
    np.testing.assert_array_equal(episodes["length"], exact["length"])


# ---- networks --------------------------------------------------------------------------------------------------------
def test_glorot_and_shared_hidden_layers():
    one, vector = (regression.initial(np.random.default_rng((9, vf.WEIGHTS)), 50, outputs) for outputs in (1, 25))
    assert [weights.shape for weights, _ in vector] == [(50, 100), (100, 50), (50, 25)]
    for layer in (0, 1):
        np.testing.assert_array_equal(one[layer][0], vector[layer][0])
    for weights, biases in vector:
        limit = np.sqrt(6 / sum(weights.shape))
        assert 0.95 * limit < np.abs(weights).max() <= limit
        assert not biases.any()


@pytest.mark.slow
def test_the_targets_of_a_seed_share_data_start_and_batches(monkeypatch):
    calls = []

    def fit(start, x, ys, orders):
        calls.append((start, x, ys, orders))
        stacked = tuple((np.stack([w] * len(ys)), np.stack([b] * len(ys))) for w, b in start)
        return stacked, np.zeros((len(ys), 1))

    monkeypatch.setattr(regression, "fit", fit)
    found = vf.run(4, DEFAULT, vf.fixed_starts(5), epochs=2)
    (start, x, ys, orders), (vector_start, vector_x, vector_ys, vector_orders) = calls
    assert ys.shape == (23, 1000, 1)
    assert vector_ys.shape == (11, 1000, 25)
    np.testing.assert_array_equal(x, vector_x)
    np.testing.assert_array_equal(orders, vector_orders)
    np.testing.assert_array_equal(start[1][0], vector_start[1][0])
    assert (np.sort(orders, axis=1) == np.arange(1000)).all()
    assert found["length"].shape == (34,)


@pytest.mark.slow
def test_a_network_can_fit_a_few_samples():
    states = vf.deal(np.random.default_rng(0), 32, fewer=True)
    y = np.stack([vf.targets(target, states, 0.5) for target in (vf.TSP, vf.RL)])
    start = regression.initial(np.random.default_rng(1), 50, 1)
    layers, losses = regression.fit(start, vf.inputs(states), y, regression.shuffles(np.random.default_rng(2), 32, 600))
    assert losses.shape == (2, 600)
    assert (losses[:, -1] < 1e-2 * losses[:, 0]).all()
    error = regression.predict(regression.model(layers, 1), vf.inputs(states)) - y[1]
    assert np.square(error).mean() < 1e-3


@pytest.mark.slow
def test_a_model_does_not_depend_on_its_neighbours_and_the_last_batch_may_be_small():
    """Against Adam written out in NumPy, with 40 samples: a batch of 32 and one of 8."""
    generator = np.random.default_rng(3)
    x, y = generator.random((40, 6)), generator.random((2, 40, 2))
    start, orders = regression.initial(generator, 6, 2, (5,)), regression.shuffles(generator, 40, 3)
    together, _ = regression.fit(start, x, y, orders)
    alone, _ = regression.fit(start, x, y[1:], orders)
    wanted = adam(start, x, y[1], orders)
    for index in range(2):
        for part in range(2):
            np.testing.assert_array_equal(together[index][part][1], alone[index][part][0])
            np.testing.assert_allclose(alone[index][part][0], wanted[index][part], atol=2e-5)


def adam(start, x, y, orders):
    (w1, b1), (w2, b2) = [(w.astype(float), b.astype(float)) for w, b in start]
    values = [w1, b1, w2, b2]
    first, second = ([np.zeros_like(one) for one in values] for _ in range(2))
    step = 0
    for order in orders:
        for batch in (order[:32], order[32:]):
            hidden = np.maximum(x[batch] @ values[0] + values[1], 0)
            slope = 2 * (hidden @ values[2] + values[3] - y[batch]) / y[batch].size
            back = slope @ values[2].T * (hidden > 0)
            step += 1
            for k, gradient in enumerate((x[batch].T @ back, back.sum(0), hidden.T @ slope, slope.sum(0))):
                first[k] = 0.9 * first[k] + 0.1 * gradient
                second[k] = 0.999 * second[k] + 0.001 * gradient**2
                rate = first[k] / (1 - 0.9**step) / (np.sqrt(second[k] / (1 - 0.999**step)) + 1e-8)
                values[k] = values[k] - 1e-3 * rate
    return (values[0], values[1]), (values[2], values[3])


# ---- the whole -------------------------------------------------------------------------------------------------------
PLAN = Plan("value-function", seeds=2, first_seed=11, reading="default", value_epochs=2)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(vf, "STARTS", 40)


@pytest.mark.slow
def test_same_seed_same_bytes(short, tmp_path):
    for name, workers in (("one", 1), ("other", 0)):  # in a process of its own, and in this one
        result = reproduce(PLAN, tmp_path / name, workers=workers).as_dict()
    for file in ("report.html", "results.jsonl", "claims.json", "figures/value-function-default.png"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()
    assert (result["seeds"], len(result["table"]), len(result["comparisons"])) == ([11, 12], 34, 66)
    assert "2 seeds are few" in result["text"]
    assert result["text"].splitlines()[0] in (tmp_path / "one" / "report.md").read_text()
    judged = {one["id"] for one in result["judged"]}
    assert {"exact-values", "tour-is-hardest", "fall-by-attractors"} <= judged
    alone = vf.run(12, DEFAULT, vf.fixed_starts(40), 2)  # a seed does not depend on those before it
    assert alone["length"].tolist() == [row["length_by_seed"][1] for row in result["table"]]


@pytest.mark.slow
def test_the_literal_reading_of_one_seed(short, tmp_path):
    result = reproduce(replace(PLAN, seeds=1, reading="literal"), tmp_path / "out", workers=0).as_dict()
    assert (tmp_path / "out" / "figures" / "value-function-literal.svg").exists()
    assert "this is the literal reading" in (tmp_path / "out" / "report.md").read_text()
    assert "One seed" in result["text"]
    assert {row["verdict"] for row in result["comparisons"]} == {"open"}
    assert result["judged"] == []


def test_a_reading_that_there_is_not(tmp_path):
    refused("did you mean 'literal'", reproduce, replace(PLAN, reading="litteral"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def made_up(steps):
    """A result with these steps by seed for each target, whatever gamma."""
    column = np.array([[steps[target][seed] for target, _ in vf.grid()] for seed in range(len(steps[vf.TSP]))])
    rest = np.zeros(len(vf.grid()))
    scored = vf.score([{"length": one, "fruits": rest, "success": rest, "loss": rest} for one in column])
    exact = vf.exact_lines(vf.fixed_starts(20), DEFAULT)
    seeds = list(range(len(column)))
    return {
        "reading": "default", "seeds": seeds, "starts": 20, "samples": 1000, "gammas": list(vf.GAMMAS), "exact": exact,
        **scored,
    }  # fmt: skip


def test_the_text_follows_the_numbers():
    spread = np.array([-1.0, 0.0, 1.0, 0.0, 0.5, -0.5])
    result = made_up({vf.TSP: 40 + spread, vf.RL: 20 + spread, vf.SUMMED: 30 + spread, vf.VECTOR: 30 - spread})
    verdicts = {(row["easier"], row["harder"]): row["verdict"] for row in result["comparisons"]}
    assert verdicts == {
        (vf.VECTOR, vf.SUMMED): "open", (vf.SUMMED, vf.RL): "reversed", (vf.RL, vf.TSP): "holds",
        (vf.VECTOR, vf.RL): "reversed", (vf.VECTOR, vf.TSP): "holds", (vf.SUMMED, vf.TSP): "holds",
    }  # fmt: skip
    text = vf.describe(result)
    assert "paired 95% intervals at no gamma" in text
    assert "vector egocentric 30.0 steps, summed egocentric 30.0 steps, RL 20.0 steps; TSP 40.0 at any" in text
    ordered = made_up({vf.TSP: 40 + spread, vf.RL: 30 + spread, vf.SUMMED: 20 + spread, vf.VECTOR: 10 + spread})
    assert "that is everywhere" in vf.describe(ordered)


def test_alone_the_figure_has_three_panels_with_exact_lines_dashed(monkeypatch):
    from multiadvisor.viz import plots

    spread = np.array([0.0, 1.0])
    result = made_up({target: 10 * k + spread for k, target in enumerate(vf.TARGETS, 1)})
    monkeypatch.setattr(vf, "summary_of", lambda evidence, reading: {**result, "text": ""})
    (figure,) = vf.figures(Evidence(PLAN, {}))
    drawn = plots.several(*figure.panels, size=figure.size)
    assert [axis.get_ylabel() for axis in drawn.axes] == [
        "steps to collect all fruits (50: stuck)", "fruits collected", "share of episodes that terminated",
    ]  # fmt: skip
    assert [line.get_linestyle() for line in drawn.axes[0].lines] == ["-"] * 4 + ["--"] * 3
    plots.plt.close(drawn)
    every = vf.figures(Evidence(replace(PLAN, reading=""), {}))
    assert len(every) == len(vf.READINGS), "every reading in the report on the paper"
