"""The paper's experiments and claims."""

from pathlib import Path

from multiadvisor.studies.claims import read_claims

read_claims(Path(__file__).with_name("claims.toml"))
