"""Asking a server from Python, with the verbs of the library: `lab = mosha.connect_to(url, token=...)`.

Nothing but the standard library is loaded until verbs or answers need more; no package of the server is needed.
"""

from mosha.client.errors import RequestDenied, ServerRefusal, ServerUnreachable
from mosha.client.lab import Lab, connect_to
from mosha.core.names.lazy import keep_public_names

__all__ = ["Lab", "RequestDenied", "ServerRefusal", "ServerUnreachable", "connect_to"]
keep_public_names(__name__)
