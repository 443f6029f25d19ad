"""The paper's Pac-Boy results at full length: 50 epochs of 20,000 transitions, five seeds."""

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.experiments.pac_boy import LAST, SETTINGS, random_player, run, score
from multiadvisor.progress import LearningBar
from multiadvisor.settings import Schedule

SEEDS = 5


@pytest.fixture(scope="module")
def rows():
    task, table = mad.make("pac-boy"), {}
    for setting in SETTINGS:
        runs = []
        for seed in range(SEEDS):
            runs.append(run(setting, task, seed, Schedule(), LearningBar(0, shown=False)).epochs)
        table[setting.name] = score(setting.name, runs)
    return table


def test_egocentric_with_a_low_gamma_is_near_optimal(rows):
    assert rows["egocentric 0.4"]["score"] >= 35


def test_egocentric_with_a_high_gamma_is_stuck(rows):
    assert rows["egocentric 0.9"]["score"] < 15
    assert rows["egocentric 0.9"]["turns"] > 299
    assert rows["egocentric 0.9"]["finished"] < 0.01


def test_agnostic_seldom_eats_the_last_fruits(rows):
    assert 32 <= rows["agnostic 0.9"]["score"] <= 36
    assert rows["agnostic 0.9"]["finished"] <= 0.75


def test_empathic_is_near_optimal(rows):
    assert rows["empathic 0.9"]["score"] >= 34.5


def test_empathic_is_robust_to_noise(rows):
    assert rows["empathic 0.9, noise 0.1"]["score"] > rows["egocentric 0.4, noise 0.01"]["score"]


def test_linear_q_learning_is_far_below(rows):
    """ "Egocentric 0.9 barely performs better than linear Q-learning.\""""
    assert rows["linear Q-learning"]["score"] < rows["egocentric 0.9"]["score"]


def test_egocentric_is_faster(rows):
    """ "Tends to finish the game 20 turns faster."""
    assert 10 < rows["empathic 0.9"]["turns"] - rows["egocentric 0.4"]["turns"] < 50


def test_the_random_player():
    row = random_player(mad.make("pac-boy"), 1000)
    assert -90 <= row["score"] <= -70


def test_a_row_is_the_mean_of_the_last_epochs():
    epochs = [{"score": float(e), "turns": 1.0, "finished": 0.0, "touches": 0.0} for e in range(50)]
    row = score("x", [epochs, epochs])
    assert row["score"] == np.mean(range(50 - LAST, 50))
