"""Holds a transcript with clients and says what is not as it is written down."""

from tests.support.transcript_clients import Clients
from tests.support.transcripts import Transcript, is_as_written, shown


def differences(transcript: Transcript, clients: Clients, resp: int, now_ms: int = 0) -> list[str]:
    """What was sent otherwise, for the reader of a failed test. now_ms: the time, where it stands still."""
    found: list[str] = []
    blocked: set[str] = set()
    for step in transcript.steps:
        if step.request:
            clients.send(step)
        if step.waits:
            blocked.add(step.client)
            clients.wait_until_blocked(len(blocked))
        elif not step.request:
            blocked.discard(step.client)
        for reply in step.replies:
            seen = shown(clients.receive(step.client))
            if not is_as_written(reply.of(resp), seen, now_ms):
                found += [f"{step.client}> {step.request}", f"  written: {reply.of(resp)}", f"  seen:    {seen}"]
    return found
