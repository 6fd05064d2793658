"""Words in the tables that more than one room reads."""

__all__ = ["SAW_THE_FUTURE"]

SAW_THE_FUTURE = "saw_the_future"
"""The check of the rows that are only there for an estimator that has seen tokens after the prefix."""
