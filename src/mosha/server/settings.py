"""One file of settings (TOML), and environment variables over it; unsafe combinations are refused.

[server]
host = "127.0.0.1"
port = 8320
ledger = "env:MOSHA_LEDGER_URL"      # a file, a URL, or the name of a variable that holds it
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from mosha.core.language import phrase
from mosha.server.errors import BadRequest

__all__ = ["LOCK", "TIMINGS", "Settings", "read_settings"]

LOCK = "server.lock"  # held by the server that works in a folder
TIMINGS = ("ladder", "fixed", "off")
_NEVER_FROM_ENVIRONMENT = {"folder"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What an operator decides.

    Units:
        Times are in seconds, sizes in bytes, `memory` is what one worker may use.
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8320
    certificate: str = ""
    key: str = ""
    behind_proxy: str = ""
    store: str = ""
    ledger: str = ""
    ledger_key: str = ""
    series: str = ""
    roots: tuple[str, ...] = ()
    workers: int = 2
    memory: int = 2_000_000_000
    deadline: float = 30.0
    timing: str = "ladder"
    language: str = "en"
    two_signatures: bool = True
    overbooking: str = "allow"
    demo: bool = False
    previews_per_minute: int = 60
    requests_per_minute: int = 30
    waiting_per_principal: int = 20
    running_per_principal: int = 2
    approval_days: int = 7
    link_minutes: int = 15
    session_hours: int = 12
    idle_minutes: int = 30
    body: int = 262_144
    metrics: str = "token"
    oidc_issuer: str = ""
    oidc_client: str = ""
    oidc_secret: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.timing not in TIMINGS:
            raise BadRequest("server.setting_wrong", parameter="timing", expected=", ".join(TIMINGS))
        if self.metrics not in ("token", "public"):
            raise BadRequest("server.setting_wrong", parameter="metrics", expected="token, public")
        if self.overbooking not in ("allow", "refuse"):
            raise BadRequest("server.setting_wrong", parameter="overbooking", expected="allow, refuse")
        if not 0 <= self.port <= 65_535:
            raise BadRequest("server.setting_wrong", parameter="port", expected="0 to 65535")
        for name in ("workers", "memory", "deadline", "body", "session_hours", "idle_minutes", "link_minutes"):
            if not getattr(self, name) > 0:
                raise BadRequest("server.setting_wrong", parameter=name, expected="> 0")
        if self.oidc_issuer and not self.oidc_client:
            raise BadRequest("server.setting_wrong", parameter="oidc_client", expected=phrase("server.name_of_client"))
        if not (self.is_loopback or (self.certificate and self.key) or self.behind_proxy):
            raise BadRequest("server.unsafe_binding", host=self.host)

    @property
    def is_loopback(self) -> bool:
        if self.host in ("localhost", "") or self.host.startswith("unix:"):
            return self.host != ""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def secure(self) -> bool:
        """Whether browsers reach the server by HTTPS."""
        return bool(self.certificate or self.behind_proxy)

    @property
    def store_place(self) -> str:
        return _resolve(self.store) or str(self.folder / "server.db")

    @property
    def ledger_place(self) -> str:
        return _resolve(self.ledger) or str(self.folder / "privacy.db")

    @property
    def series_folder(self) -> Path:
        """Where the states of series lie: in one folder for all processes of one machine that feed the same series."""
        return Path(self.series) if self.series else self.folder / "series"

    @property
    def data_roots(self) -> tuple[Path, ...]:
        return tuple(Path(root).resolve() for root in self.roots) or ((self.folder / "data").resolve(),)


def _resolve(said: str) -> str:
    """A value, or that of the environment variable which it names (`env:NAME`)."""
    return os.environ.get(said[4:], "") if said.startswith("env:") else said


def read_settings(
    folder: Path, *, file: Path | None = None, environment: Mapping[str, str] | None = None, **given: object
) -> Settings:
    """The settings of a folder: its `mosha-server.toml`, then MOSHA_SERVER_* variables, then what is given here."""
    place = file or folder / "mosha-server.toml"
    said: dict[str, Any] = {}
    if file is not None or place.is_file():
        try:
            said = tomllib.loads(place.read_text(encoding="utf-8")).get("server", {})
        except (OSError, ValueError):
            raise BadRequest("server.setting_wrong", parameter=place.name, expected="TOML, [server]") from None
    kinds = {f.name: f.type for f in fields(Settings) if f.name not in _NEVER_FROM_ENVIRONMENT}
    for name, value in (os.environ if environment is None else environment).items():
        if name.startswith("MOSHA_SERVER_"):
            said[name.removeprefix("MOSHA_SERVER_").lower()] = value
    said |= {name: value for name, value in given.items() if value is not None}
    checked = {name: _read_setting(name, value, str(kinds.get(name, ""))) for name, value in said.items()}
    return replace(Settings(folder=folder), **checked) if checked else Settings(folder=folder)


def _read_setting(name: str, value: Any, kind: str) -> Any:
    """A value of the type that the setting has; variables of the environment are text."""
    if not kind:
        raise BadRequest("server.setting_unknown", parameter=name)
    try:
        if kind == "bool":
            return value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]
        if kind.startswith("tuple"):
            return tuple(value.split(os.pathsep)) if isinstance(value, str) else tuple(map(str, value))
        if isinstance(value, bool):
            raise TypeError  # noqa: TRY301
        return {"int": int, "float": float, "str": str}[kind](value)
    except (KeyError, ValueError, TypeError):
        raise BadRequest("server.setting_wrong", parameter=name, expected=kind) from None
