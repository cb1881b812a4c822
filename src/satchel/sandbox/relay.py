"""The only way out of a sandbox without a network: a loopback port whose connections go to the host's unix socket.

Run inside the sandbox as ``python -I -S -c TEXT SOCKET COMMAND...``, so it may use nothing but the standard library. It
sets the proxy variables, runs the command as its child and ends as that ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading

_CHUNK_BYTES = 64 * 1024
_NOT_STARTED = 127
_SIGNALLED = 128
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_BYPASSES = ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy")


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Copies until the source ends, and says so to the sink."""
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK_BYTES):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def carry(client: socket.socket, path: str) -> None:
    """One connection, to its end."""
    with client, socket.socket(socket.AF_UNIX) as host:
        try:
            host.connect(path)
        except OSError:
            return
        back = threading.Thread(target=pump, args=(host, client), daemon=True)
        back.start()
        pump(client, host)
        back.join()


def accept(listener: socket.socket, path: str) -> None:
    """Takes connections until the program ends."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=carry, args=(client, path), daemon=True).start()


def main(path: str, command: list[str]) -> int:
    """The exit code of the command; 128 and the signal's number when one ended it."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, args=(listener, path), daemon=True).start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    environment = {name: value for name, value in os.environ.items() if name not in _BYPASSES}
    environment |= dict.fromkeys(_PROXIES, address)
    try:
        child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)  # noqa: S603 - no shell reads it
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return _NOT_STARTED

    def stop(number: int, frame: object) -> None:
        del number, frame
        child.terminate()

    signal.signal(signal.SIGTERM, stop)
    code = child.wait()
    return code if code >= 0 else _SIGNALLED - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
