from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from icl_estimators.estimators import REGISTRY, ContractError, UnsupportedStates, get, get_all, is_rule, split_specs
from icl_estimators.estimators.registry import parse_spec
from icl_estimators.validation import InputError

OWN = '''
import numpy as np

class Constant:
    """A rule with two settings."""
    def __init__(self, n_states, weight=0.5, *, shift=0):
        self.name, self.n_states, self.weight, self.shift = "constant", n_states, weight, shift

    def predict_proba(self, tokens):
        return np.full((*np.shape(tokens), self.n_states), 1 / self.n_states)

class Fixed(Constant):
    """Takes nothing."""
    def __init__(self):
        super().__init__(3)

class Nameless:
    n_states = 3
    def predict_proba(self, tokens): ...

def factory(n_states):
    return Constant(n_states, 0.25)

def anything(*args, **options):
    return Constant(**options)

def needs(n_states, *, power):
    return Constant(n_states, power)

def knows_the_prior(n_states, concentration):
    return Constant(n_states, concentration)

def positional(n_states, /):
    return Constant(n_states)

def refuses(n_states):
    raise ValueError(f"not for {n_states}")

made = Constant(3, 0.75)
number = 5
'''


@pytest.fixture(autouse=True)
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "reader"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "rules.py").write_text(OWN)
    (package / "broken.py").write_text("1 / 0")
    (package / "needy.py").write_text("import reade")  # a missing module whose name begins our own
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("reader", "reader.rules", "reader.broken", "reader.needy"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)


@pytest.mark.parametrize(
    ("text", "head", "value", "options"),
    [
        ("bigram", "bigram", None, {}),
        (" add-constant:0.5 ", "add-constant", 0.5, {}),
        ("construction:30", "construction", 30, {}),
        ("construction-softmax:2.2:direct_path=False", "construction-softmax", 2.2, {"direct_path": False}),
        (
            "construction-softmax:direct_path=true:gamma=1e2",
            "construction-softmax",
            None,
            {"direct_path": True, "gamma": 100.0},
        ),
        ("bigram:unseen=prefix", "bigram", None, {"unseen": "prefix"}),
        ("pkg.mod:Rule:path=a=b", "pkg.mod", "Rule", {"path": "a=b"}),
        ("pkg.mod:5", "pkg.mod", "5", {}),
    ],
)
def test_specs_are_parsed(text: str, head: str, value: object, options: dict) -> None:
    spec = parse_spec(text)
    assert (spec.text, spec.head, spec.value, spec.options) == (text.strip(), head, value, options)
    assert type(spec.value) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"empty estimator name in '': choose from transformer, construction, "),
        (":0.5", r"empty estimator name in ':0.5'"),
        ("add-constant:", r"'add-constant:' has an empty part after a colon: write add-constant:0\.5"),
        ("add-one::", r"'add-one::' has an empty part after a colon: write add-one"),
        (
            "bigram:unseen=",
            r"'bigram:unseen=' has an empty part after a colon: write bigram, bigram:unseen=prefix or bigram:order=2",
        ),
        ("bigram:=prefix", r"'bigram:=prefix' has an empty part after a colon"),
        ("construction:1:2", r"'construction:1:2' has a second value '2': write construction or construction:30"),
        ("bigram:unseen=prefix:3", r"'bigram:unseen=prefix:3' has a second value '3'"),
        ("bigram:unseen=prefix:unseen=uniform", r"'bigram:unseen=prefix:unseen=uniform' gives unseen twice"),
    ],
)
def test_specs_that_cannot_be_parsed_say_why(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_spec(text)
    with pytest.raises(InputError, match=message):
        get(text)


def test_lists_of_specs_are_split() -> None:
    assert split_specs(" bigram,add-constant:0.5 , ,pkg.mod:Rule:a=1,") == [
        "bigram",
        "add-constant:0.5",
        "pkg.mod:Rule:a=1",
    ]
    with pytest.raises(InputError, match="no estimator is given: choose from transformer, construction"):
        split_specs(" , ")
    with pytest.raises(InputError, match="bigram is given twice: give each estimator once"):
        split_specs("bigram,add-one, bigram")


@pytest.mark.parametrize(
    ("spec", "nearest"),
    [
        ("bigrm", "bigram"),
        ("transfomer", "transformer"),
        ("addone", "add-one"),
        ("add-constnt:0.5", "add-constant"),
    ],
)
def test_an_unknown_name_names_the_nearest_and_lists_all(spec: str, nearest: str) -> None:
    with pytest.raises(
        InputError, match=rf"^unknown estimator '{spec.partition(':')[0]}' \(did you mean {nearest}\?\)"
    ) as caught:
        get(spec)
    assert all(name in str(caught.value) for name in REGISTRY)
    assert "package.module:attribute" in str(caught.value)


@pytest.mark.parametrize(
    "spec", ["qqq", "qqq:zzz", "no.such.module:rule", "reader.absent:rule", "reader.rules", "a b:c"]
)
def test_a_name_near_nothing_lists_all(spec: str) -> None:
    with pytest.raises(InputError, match=r"^unknown estimator '[^']+': choose from transformer, .*, uniform, or name"):
        get(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("add-constant", r"add-constant needs a value for constant: write add-constant:0\.5"),
        ("add-constant:-1", r"the constant of add-constant must be a finite number above 0, not -1"),
        ("add-constant:0", r"the constant of add-constant must be a finite number above 0, not 0"),
        ("add-constant:inf", r"the constant of add-constant must be a finite number above 0, not inf"),
        ("add-constant:nan", r"the constant of add-constant must be a finite number above 0, not nan"),
        ("add-constant:many", r"the constant of add-constant must be a number above 0, not 'many'"),
        ("add-constant:true", r"the constant of add-constant must be a number above 0, not True"),
        ("add-constant:1:constant=2", r"add-constant:1:constant=2 gives constant twice"),
        ("add-constant:1:name=x", r"add-constant:1:name=x: unknown option 'name' \(options: constant, order\)"),
        ("add-one:3", r"add-one:3: add-one takes no value: write add-one"),
        ("add-one:n_states=4", r"add-one:n_states=4: unknown option 'n_states' \(options: order\)"),
        ("bayes:2", r"bayes:2: bayes takes no value"),
        ("bayes:concentration=2", r"bayes:concentration=2: unknown option 'concentration' \(options: none\)"),
        ("bigram:0.5", r"bigram:0\.5: bigram takes no value: write bigram, bigram:unseen=prefix or bigram:order=2"),
        ("bigram:unseen=foo", r"unseen must be uniform or prefix, not 'foo'"),
        ("bigram:seen=prefix", r"bigram:seen=prefix: unknown option 'seen' \(options: unseen, order\)"),
        ("construction:0", r"beta of construction must be a finite number above 0, not 0"),
        ("construction:inf", r"beta of construction must be a finite number above 0, not inf"),
        ("construction:delta=2", r"construction:delta=2: unknown option 'delta' \(options: beta, layer1, "),
        ("construction-softmax:direct_path=1", r"direct_path must be true or false, not 1"),
        ("construction-softmax:2:gamma=3", r"construction-softmax:2:gamma=3 gives gamma twice"),
        ("add-one:order=-1", r"order must be an integer of at least 0, not -1"),
        ("add-one:order=1.5", r"order must be an integer, not 1\.5"),
        ("bigram:order=many", r"order must be an integer, not 'many'"),
        ("bayes:order=2", r"bayes:order=2: unknown option 'order' \(options: none\)"),
        ("recency", r"recency needs a value for decay: write recency:0\.9"),
        ("recency:0", r"the decay of recency must be a finite number above 0, not 0"),
        ("recency:1.5", r"the decay of recency must be at most 1, not 1\.5"),
        ("recency:nan", r"the decay of recency must be a finite number above 0, not nan"),
        ("uniform:1", r"uniform:1: uniform takes no value: write uniform"),
    ],
)
def test_options_and_values_are_checked(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        get(spec)
    assert "\n" not in str(caught.value)


def test_the_number_of_states_and_the_concentration_are_checked() -> None:
    with pytest.raises(InputError, match="n_states must be an integer of at least 2, not 1"):
        get("bigram", n_states=1)
    with pytest.raises(InputError, match="concentration must be a finite number above 0, not -1"):
        get("bayes", concentration=-1.0)


def test_an_object_a_class_and_a_factory_of_your_own() -> None:
    assert get("reader.rules:made").weight == 0.75
    assert get("reader.rules:Constant", n_states=5).n_states == 5
    assert get("reader.rules:Fixed").n_states == 3
    assert get("reader.rules:factory", n_states=4).weight == 0.25
    assert get("reader.rules:anything", n_states=4).n_states == 4
    assert get("reader.rules:knows_the_prior", concentration=0.125).weight == 0.125


def test_your_own_class_or_factory_takes_options() -> None:
    rule = get("reader.rules:Constant:weight=0.1:shift=-2", n_states=2)
    assert (rule.n_states, rule.weight, rule.shift) == (2, 0.1, -2)
    assert get("reader.rules:anything:weight=3").weight == 3
    assert get("reader.rules:needs:power=0.5").weight == 0.5


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("reader.rules:absent", InputError, r"reader\.rules:absent: module reader\.rules has no attribute absent"),
        (
            "reader.rules:number",
            ContractError,
            r"reader\.rules:number is neither an estimator nor a class or function that makes",
        ),
        ("reader.rules:Nameless", ContractError, r"lacks name, n_states or predict_proba"),
        ("reader.rules:Constant:power=2", InputError, r"unknown option 'power' \(options: weight, shift\)"),
        ("reader.rules:anything:n_states=2", InputError, r"unknown option 'n_states'"),
        ("reader.rules:anything:power=2", InputError, r"calling it failed: TypeError: .*'power'"),
        ("reader.rules:needs", InputError, r"needs a value for power: write reader\.rules:needs:power=…"),
        ("reader.rules:positional", InputError, r"calling it failed: TypeError: "),
        ("reader.rules:refuses", InputError, r"reader\.rules:refuses: calling it failed: ValueError: not for 3"),
        ("reader.rules:made:weight=1", InputError, r"the object already exists and takes no options"),
        ("reader.rules:made:2", InputError, r"'reader\.rules:made:2' has a second value '2'"),
        ("reader.broken:rule", InputError, r"importing reader\.broken failed: ZeroDivisionError: division by zero"),
        ("reader.needy:rule", InputError, r"importing reader\.needy failed: No module named 'reade'"),
        ("numpy:array", InputError, r"numpy:array"),
        ("os:getcwd", ContractError, r"os:getcwd: .* lacks name, n_states or predict_proba"),
        ("os:sep", ContractError, r"os:sep is neither an estimator nor a class or function that makes one"),
        ("json:dumps", InputError, r"json:dumps needs a value for obj: write json:dumps:obj=…"),
        (".relative:rule", InputError, r"importing \.relative failed: TypeError"),
    ],
)
def test_what_goes_wrong_with_your_own_is_one_line(spec: str, error: type, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        get(spec)
    assert "\n" not in str(caught.value)


def test_your_own_for_another_number_of_states_is_named() -> None:
    for spec in ("reader.rules:made", "reader.rules:Fixed"):
        with pytest.raises(UnsupportedStates, match=f"{spec} is for 3 states, but 4 were asked for"):
            get(spec, n_states=4)


def test_several_are_made_in_order_with_shared_options() -> None:
    rules = get_all(["bayes", "reader.rules:Constant", "bigram"], n_states=4, concentration=0.5, warn=pytest.fail)
    assert [rule.name for rule in rules] == ["bayes", "constant", "bigram"]
    assert {rule.n_states for rule in rules} == {4}
    assert rules[0].constant == 0.5


def test_one_that_was_named_must_work() -> None:
    with pytest.raises(UnsupportedStates, match="is for 3 states, but 2 were asked for"):
        get_all(["bigram", "reader.rules:made"], n_states=2, warn=pytest.fail)
    with pytest.raises(InputError, match="unknown estimator 'bigrm'"):
        get_all(["bigrm"], n_states=2, warn=pytest.fail)


def test_two_rows_of_one_name_are_an_error() -> None:
    with pytest.raises(InputError, match=r"two estimators are called add-constant:0\.5: give each once"):
        get_all(["add-constant:0.5", "add-constant:constant=0.50"], n_states=2, warn=pytest.fail)
    close = get_all(["add-constant:0.1234567", "add-constant:0.1234568"], n_states=2, warn=pytest.fail)
    assert len({rule.name for rule in close}) == 2


def test_predictions_of_an_own_rule_are_its_own() -> None:
    np.testing.assert_array_equal(get("reader.rules:factory").predict_proba([[0, 1]]), np.full((1, 2, 3), 1 / 3))


def test_a_rule_is_what_the_package_has_as_one_whatever_it_is_called() -> None:
    specs = {"construction-softmax:2.2", "recency:0.5", "bayes", "add-one:order=2", "uniform"}
    assert all(is_rule(get(spec)) for spec in specs)
    own = get("reader.rules:Constant")
    own.name = "add-one"
    assert not is_rule(own)
    renamed = get("add-one")
    renamed.name = "transformer"
    assert is_rule(renamed)
    assert not is_rule(get("transformer"))
