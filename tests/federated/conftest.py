"""Nothing here talks to anybody outside this machine; what runs in other processes is not collected."""

import os

os.environ.update(FLWR_TELEMETRY_ENABLED="0", FLWR_DISABLE_UPDATE_CHECK="1")
collect_ignore = ["faulty_app", "replaying_node.py"]
