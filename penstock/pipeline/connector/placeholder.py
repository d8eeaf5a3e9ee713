"""What Spark hands to `read` where a batch reader planned no partitions at all."""


def is_placeholder(partition: object) -> bool:
    """Whether a partition stands for an empty plan: None, or an InputPartition with the value None (PySpark 4.2, 4.3).

    Our own partitions hold something; one that keeps it elsewhere has no `value`.
    """
    return partition is None or getattr(partition, "value", partition) is None
