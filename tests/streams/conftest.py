"""A Spark session for the streams that outgrow one machine."""

from tests.spark import spark_session as spark_session  # noqa: PLC0414
