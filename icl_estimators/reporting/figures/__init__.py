"""The figures of a report, each made from the rows of its table."""

__all__: list[str] = []
