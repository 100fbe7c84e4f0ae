"""Servers that are shared by the tests of all engines."""

from tests.mariadb import mariadb_server as mariadb_server  # noqa: PLC0414
from tests.postgres import postgres_server as postgres_server  # noqa: PLC0414
from tests.spark import spark_session as spark_session  # noqa: PLC0414
