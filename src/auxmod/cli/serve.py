"""`auxmod serve`: show a store in the browser."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from auxmod.cli.display import console
from auxmod.cli.options import WHOLE
from auxmod.cli.over_seeds import STORE, Store
from auxmod.errors import require


def serve(
    store: Store = STORE,
    /,
    *,
    host: Annotated[str, Parameter(help="The address to listen on; any but loopback asks for a token.")] = "127.0.0.1",
    port: Annotated[int, WHOLE, Parameter(help="The port; 0 takes any free one.")] = 8097,
) -> None:
    """Show a store in the browser, live while its runs train, with a playground to try its models.

    By default only this machine can open the page. With a --host that others can reach, the page opens only with the
    printed token.
    """
    require(0 <= port < 2**16, f"--port is {port}, but must lie in 0..65535.")
    from auxmod.serving.server import Server

    with Server(store, host, port) as server:
        out = console()
        out.print(f"{store} is served at", server.url, markup=False, soft_wrap=True)
        out.print("Ctrl-C ends it.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            out.print("Ended.")
