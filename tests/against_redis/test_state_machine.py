"""Hypothesis holds dialogues with Penstock and a real Redis, and shortens what it finds.

Every command is a rule; what a request says is drawn from Hypothesis's own source of chance, so that the words of a
failing dialogue are made as plain as they can be. A run is about 20,000 requests.
"""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.against_redis.comparison import Dialogue
from tests.against_redis.conftest import Reference
from tests.against_redis.generator import Generator
from tests.support.compared_sides import InProcess

EXAMPLES = 80
STEPS = 100
REQUESTS_A_STEP = 10

chances = st.randoms(use_true_random=False)


def machine_beside(reference: Any) -> Any:
    """The machine's class, with the reference that it talks to."""

    class Beside(RuleBasedStateMachine):
        @initialize(resp=st.sampled_from((2, 3)), node_entries=st.sampled_from((100, 10, 4, 1)))
        def begin(self, resp: int, node_entries: int) -> None:
            self.dialogue = Dialogue(reference.piped, reference.known, InProcess(), resp, node_entries)

        def said(self, made: list[list[str]]) -> None:
            for request in made:
                self.dialogue.say(request)

        @rule(chance=chances)
        def something(self, chance: random.Random) -> None:
            """Requests of any kind, broken ones and transactions among them."""
            generator = Generator(chance, reference.known)
            for _ in range(REQUESTS_A_STEP):
                self.said(generator.step())

        @rule(chance=chances)
        def add_and_deliver(self, chance: random.Random) -> None:
            generator = Generator(chance, reference.known)
            self.said(
                [
                    generator.of_command("XADD"),
                    generator.of_command("XADD"),
                    generator.of_command("XREADGROUP"),
                    generator.of_command("XPENDING"),
                ]
            )

        @rule(chance=chances)
        def hand_over(self, chance: random.Random) -> None:
            generator = Generator(chance, reference.known)
            self.said(
                [
                    generator.of_command("XCLAIM"),
                    generator.of_command("XAUTOCLAIM"),
                    generator.of_command("XACK"),
                    generator.of_command("XINFO|STREAM"),
                ]
            )

        @rule(chance=chances)
        def take_away(self, chance: random.Random) -> None:
            generator = Generator(chance, reference.known)
            self.said(
                [
                    generator.of_command("XDEL"),
                    generator.of_command("XTRIM"),
                    generator.of_command("XINFO|STREAM"),
                    generator.of_command("XRANGE"),
                ]
            )

    return Beside


@pytest.mark.slow
def test_every_dialogue_is_the_same_with_penstock_and_redis(reference: Reference) -> None:
    run_state_machine_as_test(
        machine_beside(reference),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
