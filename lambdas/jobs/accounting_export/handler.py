"""accounting_export: a batch of invoices goes to the accounting connector, at most once.

Every attempt, and every later round, sends the same content under the same reference, the job's effect key. Who cannot
know whether the connector took a batch asks it by that reference.
"""

from stopline import Job

from .batch import Batch
from .connector import Connector


def run(job: Job) -> dict[str, object]:
    """Send the payload's batch. Returns the connector's id for it."""
    batch = Batch.from_payload(job.effect_key, job.payload)
    connector = Connector.from_environment(job.environment, job.timeout_for_wire())
    job.effect()
    return connector.send(batch)


def reconcile(job: Job) -> str:
    """Whether the connector holds this job's batch: "applied" or "not_applied"; raises when it does not say."""
    batch = Batch.from_payload(job.effect_key, job.payload)
    return Connector.from_environment(job.environment, job.timeout_for_wire()).ask(batch)
