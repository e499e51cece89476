"""CloudWatch metrics as EMF lines on stdout: no network, no endpoint.

Powertools' shared `Metrics` object keeps its dimensions between blobs and between warm invocations, so every blob here
has an `EphemeralMetrics` of its own. Values that are no finite numbers are left out, one by one; zeros are sent.
"""

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from stopline.logs import get_logger
from stopline.settings import service_name

NAMESPACE = "Stopline"
HEARTBEAT = "Heartbeat"
_SECONDS = frozenset({"OldestDueAge", "OldestUnfinishedAge", "OldestTransactionAge"})
_ALWAYS_LEFT_OUT = frozenset({"kind", "own_metrics"})


def emit_health(totals: Mapping[str, float | None], kinds: Iterable[Mapping[str, Any]]) -> None:
    """Writes one reading: a blob for each kind that asked for its own, then the totals with the heartbeat.

    The totals' line carries every kind's numbers as plain fields. Call it only after a full successful read: its
    heartbeat is what keeps the alarm on a silent monitor quiet.
    """
    rows = [dict(kind) for kind in kinds]
    for row in rows:
        if row.get("own_metrics"):
            figures = {_metric_name(name): value for name, value in row.items() if _is_figure(name, value)}
            _emit(figures, {"kind": str(row["kind"])}, {})
    _emit({**totals, HEARTBEAT: 1}, {}, {"kinds": [_plain(row) for row in rows]})


def emit_poll(reconnects: int) -> None:
    """Writes what a poller counts about its own work."""
    _emit({"Reconnects": reconnects}, {}, {})


def _emit(figures: Mapping[str, object], dimensions: Mapping[str, str], fields: Mapping[str, object]) -> None:
    metrics = EphemeralMetrics(namespace=NAMESPACE, service=service_name())
    for name, value in dimensions.items():
        metrics.add_dimension(name=name, value=value)
    for name, field in fields.items():
        metrics.add_metadata(key=name, value=field)
    sent = 0
    for name, figure in figures.items():
        number = _number(figure)
        if number is None:
            if figure is not None:
                get_logger().warning("metric_left_out", metric=name, value=repr(figure)[:80])
            continue
        metrics.add_metric(name=name, unit=_unit(name), value=number)
        sent += 1
    if sent:
        metrics.flush_metrics()


def _number(value: object) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _unit(name: str) -> MetricUnit:
    if name in _SECONDS:
        return MetricUnit.Seconds
    return MetricUnit.NoUnit if name in {"SpendToday", "WorstCaseSpend"} else MetricUnit.Count


def _metric_name(field: str) -> str:
    """`oldest_due_age` of a kind's row is the metric OldestDueAge."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_"))


def _is_figure(name: str, value: object) -> bool:
    return name not in _ALWAYS_LEFT_OUT and (value is None or _number(value) is not None) and not isinstance(value, str)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A kind's numbers as they go into the line: a value that strict JSON refuses becomes null."""
    return {
        name: _number(value) if isinstance(value, float | Decimal) else value
        for name, value in row.items()
        if name != "own_metrics"
    }
