"""Requests as batches, from their words: the plain way, beside which the parsers are tested."""

from penstock.protocol.request_batch import (
    COLUMNS,
    MOST_POSITIONS,
    NO_WORDS,
    POSITIONS,
    REQUESTS,
    RequestBatch,
    fit_columns,
    layout,
    one,
    same_shape,
)


def batches_of(requests: list[list[bytes]], shapes: dict[bytes, int]) -> list[RequestBatch]:
    """Requests as batches, in order. shapes: by the names of the commands that have one.

    native_parser.batches and line_parser.batches do the same from bytes; this is their oracle.
    """
    found: list[RequestBatch] = []
    at, last = 0, len(requests) - 1
    while at <= last:
        request = requests[at]
        shape = shapes.get(request[0], 0) if at < last and requests[at + 1][0] == request[0] else 0
        if shape & COLUMNS and len(requests[at + 1]) == len(request) and fit_columns(request, requests[at + 1], shape):
            batch = _in_columns(requests, at, shape)
        elif shape & REQUESTS:
            batch = _of_same_shape(requests, at, shape)
        else:
            batch = one(request)
        found.append(batch)
        at += batch.count
    return found


def _of_same_shape(requests: list[list[bytes]], at: int, shape: int) -> RequestBatch:
    """The requests from a place on that have the first one's name and number of words, up to two that fit columns."""
    name, words, stop, count = requests[at][0], len(requests[at]), at + 1, len(requests)
    while stop < count and len(requests[stop]) == words and requests[stop][0] == name:
        if shape & COLUMNS and fit_columns(requests[stop - 1], requests[stop], shape):
            stop -= 1
            break
        stop += 1
    if shape & POSITIONS and 1 < words <= MOST_POSITIONS and stop - at > 1:
        columns = list(map(list, zip(*requests[at:stop], strict=True)))
        return RequestBatch([name], NO_WORDS, columns[1:], stop - at)
    return same_shape(requests[at:stop])


def _in_columns(requests: list[list[bytes]], at: int, shape: int) -> RequestBatch:
    """The requests from a place on that fit one batch with the first and have as many words; there are two at least."""
    request, stop, count = requests[at], at + 1, len(requests)
    width, own, before = layout(request, shape)
    words = len(request)
    while stop < count and len(requests[stop]) == words and fit_columns(request, requests[stop], shape):
        stop += 1
    prefix, middle = request[:width], request[width + own : before]
    names = request[before:-1:2] if words - before > 1 else NO_WORDS
    step = 2 if names else 1
    rows = [row[width : width + own] + row[before + step - 1 :: step] for row in requests[at:stop]]
    columns = list(map(list, zip(*rows, strict=True)))
    return RequestBatch(prefix, names, columns[own:], stop - at, None, None, columns[:own], middle)
