"""What deployed code relies on in the database, read from the database itself, and what breaks that.

Code of one release runs on the schema of the next: on roll back, and for as long as a deploy takes. So whatever stands
in `tests/sql/contract.json` may grow and must not shrink or change. docs/upgrade.md says what may be added how.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.database import Database

CALLERS = (
    "stopline_producer",
    "stopline_worker",
    "stopline_sweeper",
    "stopline_monitor",
    "stopline_operator",
    "stopline_source",
)
MIGRATOR_CALLS = ("sync_policy", "lower_caps", "adopt", "foreign_identity", "policy_drift", "doctor", "clock")
"""What the owner calls; the older migrator does so on a newer schema."""

MIGRATOR_READS = ("schema_migration", "installation")
VIEWS = ("support_job", "support_attempt", "support_event")

_FUNCTIONS = """
select p.proname as name,
       coalesce(p.proargnames, '{}') as names,
       array(select format_type(u.type, null)
               from unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) with ordinality u(type, n)
              order by n) as types,
       p.pronargs as arguments,
       p.pronargdefaults as defaults,
       p.proretset as many,
       format_type(p.prorettype, null) as result,
       array(select r.rolname::text
               from pg_roles r
              where r.rolname = any (%s) and has_function_privilege(r.oid, p.oid, 'execute')
              order by 1) as callers
  from pg_proc p
 where p.pronamespace = 'stopline'::regnamespace
 order by p.proname, p.pronargs
"""

_COLUMNS = """
select a.attname as name, format_type(a.atttypid, a.atttypmod) as type
  from pg_attribute a
 where a.attrelid = to_regclass('stopline.' || %s) and a.attnum > 0 and not a.attisdropped
 order by a.attnum
"""


def functions(db: Database) -> dict[str, Any]:
    """Every function that a login role, a source or the migrator calls."""
    found: dict[str, Any] = {}
    for row in db.rows(_FUNCTIONS, list(CALLERS)):
        if not row["callers"] and row["name"] not in MIGRATOR_CALLS:
            continue
        if row["name"] in found:
            raise AssertionError(f"stopline.{row['name']} exists twice: calls of older code become ambiguous")
        pairs = (
            [f"{name} {kind}" for name, kind in zip(row["names"], row["types"], strict=True)] if row["names"] else []
        )
        found[row["name"]] = {
            "arguments": pairs[: row["arguments"]],
            "defaults": row["defaults"],
            "returns": pairs[row["arguments"] :] or row["result"],
            "many": row["many"],
            "callers": row["callers"],
        }
    return found


def relations(db: Database) -> dict[str, Any]:
    """Tables and views that are read by name from outside of the engine."""
    return {
        name: [f"{column['name']} {column['type']}" for column in db.rows(_COLUMNS, name)]
        for name in (*VIEWS, *MIGRATOR_READS)
    }


def shape(value: Any) -> Any:
    """The shape of a JSON value: keys of objects, the one shape of an array's items, and type names; `null` is one."""
    if isinstance(value, Mapping):
        return {key: shape(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [merged_all(value)] if value else []
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"


def merged_all(values: list[Any]) -> Any:
    """The shape that fits all of the values."""
    together = shape(values[0])
    for value in values[1:]:
        together = merged(together, shape(value))
    return together


def merged(one: Any, other: Any) -> Any:
    """The shape that fits both; a key that one of them lacks is taken from the other."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {
            key: merged(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key))
            for key in sorted(one.keys() | other.keys())
        }
    if isinstance(one, list) and isinstance(other, list):
        return [merged(one[0], other[0])] if one and other else one or other
    if isinstance(one, str) and isinstance(other, str):
        return "|".join(sorted({*one.split("|"), *other.split("|")}))
    return one if other in ("null", []) else other


def broken(frozen: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What older code would miss, in words; empty when `now` has only grown."""
    return [
        *_functions_broken(frozen["functions"], now["functions"]),
        *_relations_broken(frozen["relations"], now["relations"]),
        *(line for name in frozen["json"] for line in _shape_broken(name, frozen["json"][name], now["json"].get(name))),
    ]


def _functions_broken(frozen: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, old in frozen.items():
        new = now.get(name)
        if new is None:
            yield f"{name}: is gone"
            continue
        known = len(old["arguments"])
        if new["arguments"][:known] != old["arguments"]:
            yield f"{name}: arguments {old['arguments']} became {new['arguments']}"
        needed = len(new["arguments"]) - new["defaults"]
        if needed > known - old["defaults"]:
            yield f"{name}: needs {needed} arguments; older calls give as few as {known - old['defaults']}"
        if new["many"] != old["many"] or isinstance(new["returns"], str) != isinstance(old["returns"], str):
            yield f"{name}: returns another kind of result"
        elif isinstance(old["returns"], str):
            if new["returns"] != old["returns"]:
                yield f"{name}: returns {new['returns']}, not {old['returns']}"
        else:
            yield from (
                f"{name}: result column {column} is gone or has another type"
                for column in old["returns"]
                if column not in new["returns"]
            )
        yield from (f"{name}: {role} may no longer call it" for role in old["callers"] if role not in new["callers"])


def _relations_broken(frozen: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, columns in frozen.items():
        yield from (
            f"{name}: column {column} is gone or has another type"
            for column in columns
            if column not in now.get(name, [])
        )


def _shape_broken(where: str, frozen: Any, now: Any) -> Iterator[str]:
    if isinstance(frozen, dict):
        if not isinstance(now, dict):
            yield f"{where}: is no object any more"
            return
        for key, old in frozen.items():
            if key in now:
                yield from _shape_broken(f"{where}.{key}", old, now[key])
            else:
                yield f"{where}.{key}: is gone"
    elif isinstance(frozen, list):
        if not isinstance(now, list):
            yield f"{where}: is no array any more"
        elif frozen and now:
            yield from _shape_broken(f"{where}[]", frozen[0], now[0])
    elif not isinstance(now, str) or not set(now.split("|")) <= set(frozen.split("|")):
        yield f"{where}: was {frozen}, is {now if isinstance(now, str) else 'a structure'}"
