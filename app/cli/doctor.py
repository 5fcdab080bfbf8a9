"""`ling-chat doctor`: what works here, what does not, and what helps."""

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(as_json: bool) -> None:
    """Check hardware, engine, model, keyring, settings and terminal. Exits 1 if one is bad."""
    import json
    from dataclasses import asdict

    from app.core.checkup.report import Health, examine

    findings = []
    for each in examine():
        findings.append(each)
        if not as_json:
            mark = {Health.GOOD: "ok  ", Health.WARNING: "warn", Health.BAD: "BAD "}[each.health]
            click.echo(f"{mark}  {each.area:<10}{each.text}")
            if each.cure:
                click.echo(f"      {'':<10}→ {each.cure}")
    healthy = all(each.health is not Health.BAD for each in findings)
    if as_json:
        report = {"healthy": healthy, "findings": [asdict(each) for each in findings]}
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
    if not healthy:
        raise click.exceptions.Exit(1)
