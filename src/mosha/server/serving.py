"""`mosha serve`: open the service, print a link that signs in once, and listen."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from mosha.server.app import make_app
from mosha.server.demo import make_demo
from mosha.server.patience import PatientProtocol
from mosha.server.people.credentials import issue
from mosha.server.people.principals import create_principal, give_role
from mosha.server.service import Service
from mosha.server.settings import Settings

__all__ = ["say_how_to_enter", "serve"]


def serve(settings: Settings, announce: Callable[[str, list[str]], None]) -> None:
    """Serve until it is told to stop. `announce` gets the address, and what the operator should read."""
    service = Service(settings)
    listening = _listen(settings)
    address = _address(settings, listening)
    tokens = make_demo(service) if settings.demo else {}
    lines = [f"Mosha listens at {address}"]
    say_how_to_enter(service, address, tokens, lines.append)
    announce(address, lines)
    config = uvicorn.Config(
        make_app(service),
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=500,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
        proxy_headers=bool(settings.behind_proxy),
        forwarded_allow_ips=settings.behind_proxy or None,
        ssl_certfile=settings.certificate or None,
        ssl_keyfile=settings.key or None,
        lifespan="on",
        http=PatientProtocol,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listening])


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind((settings.host, settings.port))
    found.listen(128)  # whoever connects from now on waits until the server is there
    return found


def _address(settings: Settings, listening: socket.socket) -> str:
    scheme = "https" if settings.certificate else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{scheme}://{host}:{listening.getsockname()[1]}"


def say_how_to_enter(service: Service, address: str, tokens: dict[str, str], say: Callable[[str], None]) -> None:
    """A link for the first administrator, as long as nobody has ever signed in; in the demo, links for each person."""
    minutes = service.settings.link_minutes
    if service.settings.demo:
        say(f"Demo: a made-up hospital. Each link signs in once, within {minutes} minutes:")
        for name, role in (("li", "analyst"), ("wang", "curator"), ("zhao", "privacy officer"), ("sun", "auditor")):
            row = service.database.row("SELECT id FROM principals WHERE name = ?", name)
            if row is not None:
                made = issue(service.database, row["id"], "link", seconds=minutes * 60)
                say(f"  {name} ({role}): {address}/enter?link={made.secret}")
        if "li" in tokens:
            say("From Python, as li:")
            say(f'  lab = mosha.connect_to("{address}", token="{tokens["li"]}")')
            say('  lab.query("SELECT ward, AVG(days) AS days FROM visits GROUP BY ward", epsilon=0.1)')
        return
    if service.database.row("SELECT 1 AS found FROM credentials"):
        return
    row = service.database.row("SELECT principal AS id FROM roles WHERE role = 'administrator'")
    identity = row["id"] if row else create_principal(service.database, kind="person", name="administrator")
    for role in ("administrator", "curator"):
        give_role(service.database, identity, role)
    made = issue(service.database, identity, "link", seconds=minutes * 60)
    say(f"Sign in as the administrator, once, within {minutes} minutes: {address}/enter?link={made.secret}")
