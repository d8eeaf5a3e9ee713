"""A script that takes long, in an engine of its own; and how a test sends any script."""

import threading

from penstock.clock import Clock, SystemClock
from penstock.server.script_thread import ScriptThread
from tests.support.dialogue import Dialogue, decoded
from tests.support.engines import make_engine
from tests.support.log import UnitLog

PATIENCE_S = 20.0
LIBRARY = b"#!lua name=lib\nredis.register_function('twice', function(keys, args) return args[1] * 2 end)"


def script(dialogue: Dialogue, code: str, *words: str) -> object:
    return decoded(dialogue.words(b"EVAL", code.encode(), *[word.encode() for word in (words or ("0",))]))


class Late:
    """An engine that calls back when a late script is over."""

    def __init__(self, log: UnitLog, clock: Clock | None = None) -> None:
        self.over = threading.Event()
        self.engine = make_engine(clock or SystemClock(), log)
        self.engine.scripts.use(ScriptThread(self.over.set))
        self.caller, self.other = Dialogue(self.engine), Dialogue(self.engine)
        self.caller("CONFIG SET busy-reply-threshold 20")

    def finish(self) -> None:
        assert self.over.wait(PATIENCE_S), "the script is over"
        self.engine.finish_script()
