"""The golden cases, read once."""

import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[1] / "cases"


def read_cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CASES / name).read_text().splitlines() if line.strip()]


def case_id(case: dict[str, Any]) -> str:
    return str(case["id"])
