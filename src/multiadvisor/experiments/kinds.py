"""Every kind of job that a report may run: a closed list, so that a results file can never name code to run."""

from __future__ import annotations

from multiadvisor.experiments import attractors, noise, pac_boy, theory_checks, value_function, watching

KINDS = {
    name: work
    for module in (pac_boy, noise, attractors, theory_checks, watching, value_function)
    for name, work in module.WORK.items()
}
