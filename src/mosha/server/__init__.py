"""A wall between the people who ask and the data they ask about.

`mosha serve` starts it; `mosha.connect_to(url, token=...)` asks it. A steward registers data and promises; people,
programs and agents who are not trusted ask questions, within budgets that are capped all the way up, and receive
nothing but what was paid for.
"""

from mosha.core.language import phrase
from mosha.core.names.extras import load_guest

_NEED = phrase("server.the_server")
load_guest("starlette", extra="server", needed_for=_NEED)
load_guest("uvicorn", extra="server", needed_for=_NEED)
load_guest("jinja2", extra="server", needed_for=_NEED)
load_guest("python_multipart", extra="server", needed_for=_NEED)
