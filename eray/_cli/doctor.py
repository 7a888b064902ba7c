"""``eray doctor``: what keeps eray from working on this host, and what to do about it. Starts nothing."""

import argparse
from collections import Counter
from collections.abc import Mapping

from eray._cli.doctor_facts import gather
from eray._core.checkup import Checkup, check
from eray._core.finding import Status
from eray._core.short_lines import short_json, short_line
from eray._slurm.environment import Mode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="print JSON, one line a finding")


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Print the findings on this host; 0 without an error, 3 with."""
    facts = gather(environ)
    checkup = check(facts)
    if args.json:
        print("\n".join(map(short_json, checkup.records())))
    else:
        print(_as_text(checkup, f"{checkup.node}: " if facts.place.environment == Mode.STEP else ""))
    return checkup.exit_code


def _as_text(checkup: Checkup, prefix: str) -> str:
    """Return a line a finding and a line a remedy, so that the lines of many nodes can be sorted and searched."""
    width = max(len(finding.name) for finding in checkup.findings)
    lines = []
    for finding in checkup.findings:
        lines.append(f"{finding.status:<7}  {finding.name:<{width}}  {finding.found}")
        if finding.remedy is not None:
            lines.append(f"{'remedy':<7}  {finding.name:<{width}}  {finding.remedy}")
    lines.append(_summary(checkup) if prefix else f"{checkup.node}: {_summary(checkup)}")
    whole = [prefix + " ".join(line.splitlines()) for line in lines]
    return "\n".join(map(short_line, whole) if prefix else whole)


def _summary(checkup: Checkup) -> str:
    counts = Counter(finding.status for finding in checkup.findings)
    named = [f"{counts[status]} {status}{'s' * (counts[status] > 1)}" for status in (Status.ERROR, Status.WARNING)]
    return ", ".join(word for word in named if not word.startswith("0")) or "nothing is wrong"
