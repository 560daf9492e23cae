"""JSON Schema of scenario files, for editors and other programs."""

from typing import Any

from scenarios.scenario import Scenario


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file.

    Returns
    -------
    dict
        JSON Schema, draft 2020-12. It does not express rules between keys (sums, rounds that overlap): `load`
        checks them.
    """
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Scenario.model_json_schema()}
