"""Runs a study's blocks of work and keeps its folder; knows no estimator."""

from icl_estimators.engine.block_store import (
    BlockStore,
    StudyBlocks,
)
from icl_estimators.engine.blocks import UNIT, blocks, unit_size
from icl_estimators.engine.designs import Design
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
from icl_estimators.engine.gathered import GatheredBlocks
from icl_estimators.engine.pieces import FinishedPiece, Piece, read_piece
from icl_estimators.engine.reading import read_folder
from icl_estimators.engine.result import StudyResult
from icl_estimators.engine.running import Progress, crew_for, keep_blocks, run_design
from icl_estimators.engine.tables import (
    Cell,
    Table,
)
from icl_estimators.engine.time_limit import OutOfTime, TimeLimit

__all__ = [
    "ATTEMPTS",
    "BlockStore",
    "Cell",
    "Crew",
    "Design",
    "FinishedPiece",
    "GatheredBlocks",
    "InProcess",
    "OutOfTime",
    "Piece",
    "Processes",
    "Progress",
    "StudyBlocks",
    "StudyResult",
    "Table",
    "TaskFailed",
    "TimeLimit",
    "UNIT",
    "blocks",
    "cannot_travel",
    "check_folder",
    "crew_for",
    "in_order",
    "keep_blocks",
    "one_thread",
    "read_folder",
    "read_piece",
    "run_design",
    "save_tables",
    "unit_size",
    "write_json",
]
