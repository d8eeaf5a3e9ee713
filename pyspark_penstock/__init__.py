"""Found by Spark by its name: registers the format `redis_streams` in every session."""

from penstock.pipeline.connector.datasource import StreamsDataSource as DefaultSource

__all__ = ["DefaultSource"]
