"""A port for SUMO to listen on, that nobody else is given meanwhile."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

LOOPBACK = "127.0.0.1"


@contextmanager
def reserved_port() -> Iterator[int]:
    """Lend a free port of the loopback interface.

    It stays bound until SUMO has answered, and is never listened on here: so the system gives it to no other run that
    asks for a free one, while SUMO, which shares addresses as this does, may listen on it.

    Yields
    ------
    int
        The port.
    """
    with socket.socket() as held:
        if os.name == "posix":
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((LOOPBACK, 0))
        port: int = held.getsockname()[1]
        if os.name != "posix":
            held.close()  # elsewhere sharing an address means taking it over, and SUMO does not
        yield port
