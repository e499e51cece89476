"""The functions of a synthesized deployment, ready to run on this machine."""

import fcntl
import functools
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from stacks.constructs.bundles import LAMBDAS, build_function, build_layer
from stacks.constructs.machine import Machine
from tests.e2e.harness.function import Function
from tests.support.database import Database
from tests.support.run import RUN_VARIABLE
from tests.support.synth import ROOT, Synthesis, synth, synthesis

FAULTY_KINDS = ROOT / "tests" / "e2e" / "kinds"
HERE = Machine(
    {"aarch64": "arm64"}.get(platform.machine(), platform.machine()), ".".join(platform.python_version_tuple()[:2])
)
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
_ENVIRONMENT_FOLDERS = {"/var/task": "code", "/opt": "layer"}


class Deployment:
    """The Python functions of the jobs stack by what their description calls them, such as "poller of work".

    Their code is the asset that would be uploaded, and the layer the one built by the same code for this machine. An
    asset that holds packages is built for this machine too.
    """

    def __init__(self, made: Synthesis, kinds_dir: Path) -> None:
        self._template = made.stack("Jobs")
        self._made = made
        self._kinds_dir = kinds_dir
        (manifest,) = made.folder.glob("*Jobs.assets.json")
        self._assets = json.loads(manifest.read_text())["files"]

    @functools.cached_property
    def functions(self) -> dict[str, Function]:
        found = {}
        for logical_id, properties in self._of_type("AWS::Lambda::Function").items():
            if properties["Runtime"].startswith("python"):
                function = self._function(logical_id, properties)
                found[function.name] = function
        return found

    def function(self, name: str, db: Database, **environment: str) -> Function:
        """The function on a test's database. `environment` changes more of what only AWS has."""
        function = self.functions[name]
        here = {name: value for name, value in db.environment("").items() if name != "STOPLINE_DB_USER"}
        stands_in = {name: value for name, value in here.items() if name in function.environment} | environment
        ready: dict[str, Any] = {**function.environment, **stands_in}
        elsewhere = [name for name, value in ready.items() if not isinstance(value, str)]
        assert not elsewhere, f"{name} takes {elsewhere} from elsewhere: say what stands in for it"
        return replace(function, environment=ready)

    @property
    def layer_asset(self) -> Path:
        """The layer as it is uploaded, for the functions' own machine."""
        (layer,) = self._of_type("AWS::Lambda::LayerVersion").values()
        return self._asset(layer["Content"])

    def _asset(self, place: Mapping[str, Any]) -> Path:
        """The folder that is uploaded as a resource's code."""
        file = self._assets[place["S3Key"].removesuffix(".zip")]
        return self._made.folder / str(file["source"]["path"])

    def _of_type(self, kind: str) -> dict[str, Any]:
        resources = self._template["Resources"].items()
        return {name: resource["Properties"] for name, resource in resources if resource["Type"] == kind}

    def _function(self, logical_id: str, properties: Mapping[str, Any]) -> Function:
        folders = {"code": self._code(properties), "layer": build_layer(HERE)}
        return Function(
            name=str(properties["Description"]).removeprefix("Stopline: "),
            handler=properties["Handler"],
            runtime=properties["Runtime"],
            **folders,
            environment={name: _located(value, folders) for name, value in _variables(properties).items()},
            timeout_s=properties["Timeout"],
            memory_mb=properties["MemorySize"],
            log_format=properties["LoggingConfig"]["LogFormat"],
            events=tuple(
                schedule["Target"]["Input"]
                for schedule in self._of_type("AWS::Scheduler::Schedule").values()
                if schedule["Target"]["Arn"] == {"Fn::GetAtt": [logical_id, "Arn"]}
            ),
        )

    def _code(self, properties: Mapping[str, Any]) -> Path:
        asset = self._asset(properties["Code"])
        if not any(asset.glob("*.dist-info")):
            return asset
        (handler,) = (
            folder.name
            for folder in LAMBDAS.iterdir()
            if (folder / "handler.py").is_file()
            and (folder / "handler.py").read_bytes() == (asset / "handler.py").read_bytes()
        )
        kinds = sorted(folder.name for folder in (asset / "jobs").iterdir())
        return build_function(handler, HERE, self._kinds_dir, kinds=kinds)


@functools.cache
def shipped() -> Deployment:
    """The default deployment with the shipped kinds."""
    return Deployment(synthesis("default"), ROOT / "lambdas" / "jobs")


@functools.cache
def faulty() -> Deployment:
    """A deployment of tests/e2e/kinds, synthesized once a run."""
    base = Path(os.environ[RUN_VARIABLE])
    base.mkdir(mode=0o711, exist_ok=True)
    folder = base / "synth-e2e"
    with (base / "synth-e2e.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done.txt").exists():
            kinds_dir = FAULTY_KINDS.relative_to(ROOT)
            finished = synth(*_context(config="examples/default.json", kinds_dir=kinds_dir), "-o", str(folder))
            assert finished.returncode == 0, finished.stderr
            (folder / "done.txt").touch()
    return Deployment(Synthesis(folder, ""), FAULTY_KINDS)


def _context(**values: object) -> list[str]:
    return [word for name, value in values.items() for word in ("-c", f"{name}={value}")]


def _variables(properties: Mapping[str, Any]) -> dict[str, Any]:
    variables: dict[str, Any] = properties["Environment"]["Variables"]
    return variables


def _located(value: Any, folders: Mapping[str, Path]) -> Any:
    """A path in Lambda's file system as the path of what lies there here."""
    if isinstance(value, str):
        for place, folder in _ENVIRONMENT_FOLDERS.items():
            if value == place or value.startswith(f"{place}/"):
                return f"{folders[folder]}{value.removeprefix(place)}"
    return value
