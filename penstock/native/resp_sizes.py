"""How many bytes words and requests take in RESP."""


def request_bytes(request: list[bytes]) -> int:
    """The length of a request as an array of bulk strings, in bytes. O(words)."""
    count = len(request)
    return words_bytes(request) + (4 if count < 10 else 3 + len(str(count)))


def words_bytes(words: list[bytes]) -> int:
    """The length of words as bulk strings, in bytes. O(words)."""
    size = 0
    for word in words:
        length = len(word)
        size += length + (6 if length < 10 else 7 if length < 100 else 5 + len(str(length)))
    return size
