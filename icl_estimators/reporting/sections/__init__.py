"""The sections of a report: each adds itself to a page if its tables are there."""

__all__: list[str] = []
