"""Trained weights on disk: a safetensors file, and a JSON sidecar that describes them.

Loading reads numbers and text, never code. The sidecar holds the SHA-256 of the weights' file, so that a mismatch is
found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from icl_estimators.files import write_whole
from icl_estimators.transformer.config import ModelConfig, require_fields
from icl_estimators.transformer.engines import Engine
from icl_estimators.transformer.model import Transformer
from icl_estimators.validation import InputError

__all__ = ["CheckpointInfo", "load_checkpoint", "read_info", "read_tensors", "save_checkpoint", "sidecar_path"]


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """What a sidecar says; every value is plain, ready for JSON.

    Attributes
    ----------
    config : dict
        Fields of :class:`~icl_estimators.transformer.config.ModelConfig`.
    seed, step : int
        The training run's seed, and the updates that these weights have had.
    recipe : dict
        Fields of :class:`~icl_estimators.transformer.training.trainer.Recipe`.
    metrics : dict of str to number or None
        What was measured on these weights; None where it is undefined.
    threads, device, engine
        What the run was computed on and by; a different number of threads may differ in the last bits, and so
        does another engine.
    versions : dict of str to str or None
        Of Python and of the libraries that the weights depend on.
    commit : str or None
        The commit of the code, where it is known; "-dirty" at its end says that files were changed.
    sha256 : str
        Of the safetensors file.
    """

    config: dict[str, Any]
    seed: int
    step: int
    recipe: dict[str, Any]
    metrics: dict[str, float | None]
    threads: int
    device: str
    versions: dict[str, str | None]
    commit: str | None
    engine: Engine = "torch"
    sha256: str = ""


def sidecar_path(path: Path) -> Path:
    """Return where the sidecar of a checkpoint lies.

    Examples
    --------
    >>> sidecar_path(Path("k3-seed0.safetensors")).name
    'k3-seed0.json'
    """
    return path.with_suffix(".json")


def save_checkpoint(path: str | Path, parameters: Mapping[str, Tensor], info: CheckpointInfo) -> CheckpointInfo:
    """Write weights and sidecar, each whole or not at all.

    Parameters
    ----------
    path : str or Path
        Of the safetensors file; the sidecar has the same name and ends in .json.
    parameters : mapping of name to Tensor
        As :attr:`ModelConfig.parameter_shapes` names them; written as float32.
    info : CheckpointInfo
        Its `sha256` is not read.

    Returns
    -------
    CheckpointInfo
        As it was written, with the SHA-256.

    Raises
    ------
    InputError
        If a weight is NaN or infinite, or the files cannot be written.
    """
    path = Path(path)
    tensors = {name: tensor.detach().to("cpu", torch.float32).contiguous() for name, tensor in parameters.items()}
    _require_finite(path, tensors)
    content = save(tensors)
    info = replace(info, sha256=hashlib.sha256(content).hexdigest())
    text = json.dumps(asdict(info), indent=2, allow_nan=False)
    try:
        with write_whole(path) as temporary:
            temporary.write_bytes(content)
        with write_whole(sidecar_path(path)) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    return info


def load_checkpoint(path: str | Path) -> tuple[Transformer, CheckpointInfo]:
    """Read a checkpoint and prove that it is what its sidecar says.

    Returns
    -------
    (Transformer, CheckpointInfo)
        The model in evaluation mode, on the CPU, with weights that need no gradient.

    Raises
    ------
    InputError
        If the file or its sidecar is missing, unreadable or damaged, is a pickle, or the two disagree; if a
        tensor is missing, is not expected, has another shape or type, or holds NaN or infinity.
    """
    path = Path(path)
    content, tensors = read_tensors(path)
    info = read_info(path)
    sidecar = sidecar_path(path)
    if info.sha256 != hashlib.sha256(content).hexdigest():
        raise InputError(
            f"{sidecar} belongs to another file than {path}: the SHA-256 differs; copy both files together"
        )
    try:
        config = ModelConfig.from_dict(info.config)
    except InputError as error:
        raise InputError(f"{sidecar}: {error}") from None
    _require_shapes(path, tensors, config)
    _require_finite(path, tensors)
    model = Transformer(config)
    model.load_state_dict(tensors)
    return model.requires_grad_(False).eval(), info


def read_tensors(path: Path) -> tuple[bytes, dict[str, Tensor]]:
    """Return the bytes of a safetensors file and the tensors in it.

    Raises
    ------
    InputError
        If the file is missing, unreadable, a pickle, truncated, or no safetensors file.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"no such checkpoint: {path} (python -m icl_estimators.train makes one)") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    try:
        return content, load(content)
    except (SafetensorError, KeyError, ValueError):
        if content.startswith((b"\x80", b"PK")):  # asked only now: a header's length may look like that too
            raise InputError(f"{path} is a pickle, which is never loaded: save it as safetensors") from None
        raise InputError(f"{path} is incomplete or not a safetensors file: copy it again or train again") from None


def read_info(path: Path) -> CheckpointInfo:
    """Return what the sidecar of the checkpoint `path` says.

    Raises
    ------
    InputError
        If there is no sidecar, or it is not JSON with just the fields that it must have.
    """
    sidecar = sidecar_path(path)
    try:
        values = json.loads(sidecar.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} has no sidecar: copy {sidecar.name} to the same folder") from None
    except OSError as error:
        raise InputError(f"cannot read {sidecar}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{sidecar} is not JSON: copy it again") from None
    if not isinstance(values, dict):
        raise InputError(
            f"{sidecar} is not the sidecar of a checkpoint: it is not an object with the config and the rest"
        )
    values.setdefault("engine", "torch")  # sidecars from before there was another
    require_fields(CheckpointInfo, values, f"{sidecar} is not the sidecar of a checkpoint: it")
    for name in ("config", "recipe", "metrics"):
        if not isinstance(values[name], dict):
            raise InputError(f"{sidecar} is not the sidecar of a checkpoint: its {name} is not an object")
    return CheckpointInfo(**values)


def _require_shapes(path: Path, tensors: Mapping[str, Tensor], config: ModelConfig) -> None:
    if config.n_layers > len(tensors):  # so that a wild number cannot ask for a list of as many names
        raise InputError(f"{path} has {len(tensors)} tensors, too few for the {config.n_layers} layers of its sidecar")
    expected = config.parameter_shapes
    for name in sorted(expected.keys() - tensors.keys()):
        raise InputError(f"{path} lacks the tensor {name} that its sidecar's config needs")
    for name in sorted(tensors.keys() - expected.keys()):
        raise InputError(f"{path} has a tensor {name} that is not in its sidecar's config")
    for name, shape in expected.items():
        tensor = tensors[name]
        if tuple(tensor.shape) != shape:
            raise InputError(f"{path}: {name} has shape {tuple(tensor.shape)}, but its sidecar says {shape}")
        if tensor.dtype != torch.float32:
            raise InputError(f"{path}: {name} is {tensor.dtype}, but weights must be torch.float32")


def _require_finite(path: Path, tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise InputError(f"{path}: {name} holds NaN or infinity: the training run diverged")
