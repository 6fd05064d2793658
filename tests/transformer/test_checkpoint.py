from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from icl_estimators.files import sha256
from icl_estimators.transformer import (
    CheckpointInfo,
    ModelConfig,
    Transformer,
    initial_parameters,
    load_checkpoint,
    save_checkpoint,
)
from icl_estimators.transformer.training import Recipe
from icl_estimators.validation import InputError

CONFIG = ModelConfig(n_states=3, length=6, d_model=4)


def info(config: ModelConfig = CONFIG) -> CheckpointInfo:
    return CheckpointInfo(
        config=config.to_dict(),
        seed=5,
        step=10,
        recipe=Recipe(steps=10, length=6).to_dict(),
        metrics={"regret_nats": 0.1, "loss_nats": None},
        threads=1,
        device="cpu",
        versions={"torch": "x"},
        commit=None,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "k3-seed5.safetensors"
    save_checkpoint(path, initial_parameters(CONFIG, 5), info())
    return path


def rewrite_sidecar(path: Path, **changed: object) -> None:
    sidecar = path.with_suffix(".json")
    values = json.loads(sidecar.read_text(encoding="utf-8"))
    sidecar.write_text(json.dumps({**values, **changed}), encoding="utf-8")


def replace_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Write other tensors with a sidecar that fits the file but for what the test is about."""
    save_file(tensors, path)
    rewrite_sidecar(path, sha256=sha256(path))


def test_round_trip(path):
    model, read = load_checkpoint(path)
    assert model.config == CONFIG
    assert not model.training
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, initial_parameters(CONFIG, 5)[name])
        assert not parameter.requires_grad
    assert read == dataclasses.replace(info(), sha256=read.sha256)
    assert len(read.sha256) == 64
    assert load_checkpoint(str(path))[1] == read


def test_config_of_another_form(tmp_path):
    config = ModelConfig(n_states=2, length=3, d_model=4, n_layers=3, n_heads=2, sentinel=True)
    path = tmp_path / "odd.safetensors"
    written = save_checkpoint(path, initial_parameters(config, 0), info(config))
    model, read = load_checkpoint(path)
    assert read == written
    tokens = torch.tensor([[0, 1, 1]])
    assert torch.equal(model(tokens), Transformer(config, seed=0).requires_grad_(False)(tokens))


def test_sidecar_has_no_paths(path):
    assert str(path.parent) not in path.with_suffix(".json").read_text(encoding="utf-8")


def test_only_the_two_files_are_left(path):
    assert sorted(file.name for file in path.parent.iterdir()) == ["k3-seed5.json", "k3-seed5.safetensors"]


def refused(path: Path, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        load_checkpoint(path)
    assert "\n" not in str(caught.value)


def test_missing_file(tmp_path):
    refused(tmp_path / "none.safetensors", "no such checkpoint")


def test_a_folder(tmp_path):
    refused(tmp_path, "cannot read")


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_truncated(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    refused(path, "incomplete or not a safetensors file")


def test_not_safetensors(path):
    path.write_text("just some text that is long enough", encoding="utf-8")
    refused(path, "incomplete or not a safetensors file")


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


@pytest.mark.parametrize("how", ["plain", "torch"])
def test_pickle_is_never_loaded(path, how):
    if how == "plain":
        path.write_bytes(pickle.dumps(Bomb()))
    else:
        torch.save({"embedding": torch.zeros(2)}, path)
    refused(path, "is a pickle")


def test_a_header_that_looks_like_a_pickle(path):
    """The file's first bytes are the length of its header, and may be those of a pickle by chance."""
    tensors, padding = load_file(path), 0
    while not path.read_bytes().startswith(b"\x80"):
        padding += 8
        save_file(tensors, path, {"padding": "x" * padding})
    rewrite_sidecar(path, sha256=sha256(path))
    assert load_checkpoint(path)[0].config == CONFIG


def test_missing_tensor(path):
    tensors = load_file(path)
    del tensors["layers.1.key"]
    replace_tensors(path, tensors)
    refused(path, r"lacks the tensor layers\.1\.key")


def test_extra_tensor(path):
    replace_tensors(path, {**load_file(path), "bias": torch.zeros(3)})
    refused(path, "has a tensor bias")


def test_wrong_shape(path):
    replace_tensors(path, {**load_file(path), "embedding": torch.zeros(4, 4)})
    refused(path, r"embedding has shape \(4, 4\), but its sidecar says \(3, 4\)")


def test_wrong_type(path):
    replace_tensors(path, {**load_file(path), "embedding": torch.zeros(3, 4, dtype=torch.float64)})
    refused(path, r"embedding is torch\.float64")


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_not_finite(path, value):
    tensors = load_file(path)
    tensors["unembedding"][1, 1] = value
    replace_tensors(path, tensors)
    refused(path, "unembedding holds NaN or infinity")


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    weights = initial_parameters(CONFIG, 0)
    weights["embedding"][0, 0] = torch.nan
    with pytest.raises(InputError, match="embedding holds NaN"):
        save_checkpoint(tmp_path / "x.safetensors", weights, info())
    assert not list(tmp_path.iterdir())


def test_cannot_write(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot write"):
        save_checkpoint(tmp_path / "file" / "x.safetensors", initial_parameters(CONFIG, 0), info())


def test_missing_sidecar(path):
    path.with_suffix(".json").unlink()
    refused(path, r"no sidecar: copy k3-seed5\.json")


@pytest.mark.parametrize("text", ["{", "", "\udcff"])
def test_sidecar_is_not_json(path, text):
    path.with_suffix(".json").write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(path, "is not JSON")


def test_sidecar_that_cannot_be_read(path):
    path.with_suffix(".json").unlink()
    path.with_suffix(".json").mkdir()
    refused(path, "cannot read")


def test_sidecar_with_other_fields(path):
    rewrite_sidecar(path, colour="red")
    refused(path, "sidecar of a checkpoint: it has an unknown field 'colour'")
    path.with_suffix(".json").write_text("[1, 2]", encoding="utf-8")
    refused(path, "is not the sidecar of a checkpoint")


def test_sidecar_of_another_file(path):
    rewrite_sidecar(path, sha256="0" * 64)
    refused(path, "SHA-256 differ")


def test_sidecar_with_another_config(path):
    rewrite_sidecar(path, config=ModelConfig(n_states=4, length=6, d_model=4).to_dict())
    refused(path, r"embedding has shape \(3, 4\), but its sidecar says \(4, 4\)")


def test_sidecar_with_more_layers(path):
    rewrite_sidecar(path, config={**CONFIG.to_dict(), "n_layers": 10**9})
    refused(path, "too few for the 1000000000 layers")


def test_sidecar_with_a_config_that_is_none(path):
    rewrite_sidecar(path, config={"n_states": 3})
    refused(path, "json: the model's config lacks")
    for name in ("metrics", "recipe", "config"):
        rewrite_sidecar(path, **{name: [3]})
        refused(path, f"its {name} is not an object")
