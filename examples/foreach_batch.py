"""Exactly once in foreachBatch: paid and unpaid bills go to two streams, whatever is killed meanwhile.

    python examples/foreach_batch.py 127.0.0.1:6379 checkpoints/bills

Each part of a batch is written by a job that names the batch: `txnAppId` stays, `txnVersion` is the batch's number. If
Spark runs the batch again, the job finds its rows and writes none. Needs the extra `spark`, and a stream `bills` with
the fields `bill` and `paid`.
"""

import argparse

from pyspark.sql import DataFrame

from penstock.pipeline.session import session

APPLICATION = "split-bills"


def main() -> None:
    parser = argparse.ArgumentParser(description="Split the stream `bills` into the streams `paid` and `unpaid`.")
    parser.add_argument("endpoint", help="HOST:PORT of the server")
    parser.add_argument("checkpoint", help="the folder of Spark's checkpoint")
    chosen = parser.parse_args()

    def split(batch: DataFrame, number: int) -> None:
        batch.persist()
        for stream, condition in (("paid", "paid"), ("unpaid", "NOT paid")):
            writer = batch.where(condition).write.format("redis_streams").mode("append")
            writer = writer.option("endpoints", chosen.endpoint).option("stream", stream)
            writer.option("txnAppId", APPLICATION).option("txnVersion", number).save()
        batch.unpersist()

    spark = session("local[2]", APPLICATION)
    bills = spark.readStream.format("redis_streams").option("endpoints", chosen.endpoint).option("stream", "bills")
    rows = bills.option("startingId", "earliest").schema("bill string, paid boolean").load()
    query = rows.writeStream.foreachBatch(split).option("checkpointLocation", chosen.checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
