"""Runs a study's blocks of work and keeps its folder; knows no estimator."""

from icl_estimators.engine.block_store import (
    BlockStore,
    StudyBlocks,
)
from icl_estimators.engine.executors import (
    ATTEMPTS,
    Crew,
    InProcess,
    Processes,
    TaskFailed,
    cannot_travel,
    in_order,
    one_thread,
)
from icl_estimators.engine.folder import (
    check_folder,
    save_tables,
    write_json,
)
from icl_estimators.engine.tables import (
    Cell,
    Table,
)

__all__ = [
    "ATTEMPTS",
    "BlockStore",
    "Cell",
    "Crew",
    "InProcess",
    "Processes",
    "StudyBlocks",
    "Table",
    "TaskFailed",
    "cannot_travel",
    "check_folder",
    "in_order",
    "one_thread",
    "save_tables",
    "write_json",
]
