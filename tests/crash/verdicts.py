"""What a restarted server must have, by the journals of its clients."""

from tests.crash.loaders import Link, PrivateLoader, SharedLoader
from tests.crash.picture import picture
from tests.support.dialogue import Dialogue, decoded
from tests.support.engines import make_engine


class Lost(AssertionError):
    """Something that was answered is gone, or something is half there."""


class Model:
    """An engine without a disk that is told the same as the server was."""

    def __init__(self) -> None:
        self._client = Dialogue(make_engine())
        self._observer = self._client.another()

    def tell(self, request: list[bytes]) -> None:
        self._client.words(*request)
        if request[0] == b"SELECT":
            self._observer.words(*request)

    def ask(self, *words: bytes) -> object:
        return decoded(self._observer.words(*words))


def check_private(link: Link, loader: PrivateLoader) -> object:
    """What is there must be what the first n requests lead to, n at least those answered: that picture, or Lost."""
    link.ask(b"SELECT", b"%d" % loader.database)
    found = picture(link.ask, loader.prefix)
    model = Model()
    for request in loader.sent[: loader.answered]:
        model.tell(request)
    wanted = first_wanted = picture(model.ask, loader.prefix)
    for request in loader.sent[loader.answered :]:
        if found == wanted:
            break
        model.tell(request)
        wanted = picture(model.ask, loader.prefix)
    if found != wanted:
        raise Lost(
            f"{loader.prefix}: after {loader.answered} answered of {len(loader.sent)} sent\n"
            f"found  {found}\nwanted {first_wanted}\nor     {wanted}"
        )
    return found


def check_unchanged(link: Link, loader: PrivateLoader, was: object) -> None:
    """No client wrote to these keys since their picture was taken."""
    link.ask(b"SELECT", b"%d" % loader.database)
    found = picture(link.ask, loader.prefix)
    if found != was:
        raise Lost(f"{loader.prefix} has changed by itself\nfound {found}\nwas   {was}")


def check_shared(link: Link, loaders: list[SharedLoader]) -> None:
    """Entries that were answered are there, once; deliveries and acknowledgements count; transactions are whole."""
    prefix = loaders[0].prefix
    link.ask(b"SELECT", b"0")
    entries = link.ask(b"XRANGE", prefix + b"shared", b"-", b"+")
    assert isinstance(entries, list)
    there: dict[tuple[bytes, int], bytes] = {}
    for entry_id, (name, number) in entries:
        if (name, int(number)) in there:
            raise Lost(f"{name!r} {number!r} is there twice")
        there[name, int(number)] = entry_id
    for loader in loaders:
        _check_member(link, loader, there)
    pairs, count = link.ask(b"XLEN", prefix + b"pairs"), link.ask(b"GET", prefix + b"count")
    answered, sent = sum(loader.whole for loader in loaders), sum(loader.pairs for loader in loaders)
    if pairs != int(count if isinstance(count, bytes) else 0):
        raise Lost(f"half a transaction: {pairs} entries, counted {count!r}")
    if not isinstance(pairs, int) or not answered <= pairs <= sent:
        raise Lost(f"{pairs} transactions of {answered} answered, {sent} sent")


def _check_member(link: Link, loader: SharedLoader, there: dict[tuple[bytes, int], bytes]) -> None:
    name = loader.consumer
    for number, entry_id in loader.added.items():
        if there.get((name, number)) != entry_id:
            raise Lost(f"{name!r} was told that {number} is {entry_id!r}: found {there.get((name, number))!r}")
    if any(number >= loader.numbered for owner, number in there if owner == name):
        raise Lost(f"{name!r} never sent what is there")
    held = link.ask(b"XPENDING", loader.prefix + b"shared", b"g", b"-", b"+", b"1000000", name)
    pending = {line[0] for line in held} if isinstance(held, list) else set()
    if not loader.delivered - loader.acknowledging <= pending:
        raise Lost(f"{name!r} was given {sorted(loader.delivered - loader.acknowledging - pending)}, not pending")
    if pending & loader.acknowledged:
        raise Lost(f"{name!r} acknowledged {sorted(pending & loader.acknowledged)}, still pending")
