"""Questions to a synthesized template."""

from typing import Any

from tests.support.synth import Template

Resource = dict[str, Any]


def of_type(template: Template, resource_type: str) -> dict[str, Resource]:
    """The resources of one type, by logical id."""
    return {name: each for name, each in template["Resources"].items() if each["Type"] == resource_type}


def only(template: Template, resource_type: str) -> Resource:
    """The one resource of a type."""
    (resource,) = of_type(template, resource_type).values()
    return resource


def depends_on(template: Template, name: str) -> set[str]:
    """Everything in this template that is made before `name`: what it waits for or refers to, through all steps."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for other in _direct(template, waiting.pop()) - found:
            found.add(other)
            waiting.append(other)
    return found


def _direct(template: Template, name: str) -> set[str]:
    resource = template["Resources"][name]
    named = resource.get("DependsOn", [])
    names: set[str] = {named} if isinstance(named, str) else set(named)
    return {each for each in names | _references(resource) if each in template["Resources"]}


def _references(value: object) -> set[str]:
    if isinstance(value, list):
        return {name for item in value for name in _references(item)}
    if not isinstance(value, dict):
        return set()
    found = {value["Ref"]} if isinstance(value.get("Ref"), str) else set()
    if isinstance(value.get("Fn::GetAtt"), list):
        found.add(value["Fn::GetAtt"][0])
    return found | {name for item in value.values() for name in _references(item)}
