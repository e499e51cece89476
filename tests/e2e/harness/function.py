"""A Lambda function as a deployment declares it: what an execution environment is made from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Function:
    """`code` is what lies in /var/task, `layer` what lies in /opt. `events` are the inputs of its schedules."""

    name: str
    handler: str
    runtime: str
    code: Path
    layer: Path
    environment: Mapping[str, str]
    timeout_s: int
    memory_mb: int
    log_format: str
    events: tuple[str, ...] = ()

    def lambdas_own(self) -> dict[str, str]:
        """The variables that Lambda itself sets, apart from those that its runtime sets."""
        return {
            "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "AKIDTEST",
            "AWS_SECRET_ACCESS_KEY": "stopline-test-secret",
            "AWS_SESSION_TOKEN": "stopline-test-token",
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{self.runtime}",
            "AWS_LAMBDA_FUNCTION_NAME": self.name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self.memory_mb),
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(self.timeout_s),
            "AWS_LAMBDA_LOG_FORMAT": self.log_format,
            "LAMBDA_TASK_ROOT": str(self.code),
            "LANG": "en_US.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/bin",
            # /var/task and /opt are read-only: what ships is compiled anew at every start.
            "PYTHONDONTWRITEBYTECODE": "1",
            "TZ": ":UTC",
        }
