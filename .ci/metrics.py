"""Checks the metrics of a server with Prometheus: the scrape, every alert, and every query of
the dashboard.

Usage: metrics.py METRICS_ADDRESS PROMETHEUS

The server has answered one ListTasks.
"""

import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT_SECONDS = 60
ALERTS = pathlib.Path("docs/alerts.yaml").absolute()
DASHBOARD = pathlib.Path("docs/grafana/expertise.json")
COUNTED = 'grpc_server_handled_total{grpc_method="ListTasks",grpc_code="OK"}'
# Grafana's variables, and what stands for them here.
VARIABLES = {"$job": ".*", "$instance": ".*", "$__rate_interval": "1m"}


def check(address: str, program: str, directory: str) -> None:
    config = pathlib.Path(directory, "prometheus.yml")
    scrape = {"job_name": "expertise", "static_configs": [{"targets": [address]}]}
    intervals = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    # JSON is YAML, too.
    config.write_text(json.dumps({"global": intervals, "rule_files": [str(ALERTS)], "scrape_configs": [scrape]}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = f"127.0.0.1:{free.getsockname()[1]}"
    options = [f"--config.file={config}", f"--storage.tsdb.path={directory}/data", f"--web.listen-address={own}"]
    log = pathlib.Path(directory, "log")
    with log.open("wb") as file:
        process = subprocess.Popen([program, *options, "--log.level=warn"], stdout=file, stderr=file)

    def get(path: str, **parameters: str):
        url = f"http://{own}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            return json.load(response)["data"]

    def query(expression: str) -> list:
        try:
            return get("query", query=expression)["result"]
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{expression}: {error.read().decode()}") from error

    def wait_for(what: str, ask):
        """Repeats a question until it has an answer."""
        begun = time.monotonic()
        while time.monotonic() - begun < TIMEOUT_SECONDS and process.poll() is None:
            try:
                if answer := ask():
                    return answer
            except urllib.error.URLError:
                # It is starting.
                pass
            time.sleep(0.2)
        raise SystemExit(f"no {what}: {log.read_text()}")

    def rules_of(groups: list) -> list:
        return [rule for group in groups for rule in group["rules"]]

    def known(health_of_each: list) -> list:
        return health_of_each if all(it["health"] != "unknown" for it in health_of_each) else []

    try:
        (target,) = wait_for("scrape", lambda: known(get("targets")["activeTargets"]))
        if target["health"] != "up":
            raise SystemExit(f"the scrape fails: {target['lastError']}")
        (counted,) = wait_for("counted call", lambda: query(COUNTED))
        if counted["value"][1] != "1":
            raise SystemExit(f"not one call: {counted}")
        rules = wait_for("evaluation of alerts", lambda: known(rules_of(get("rules")["groups"])))
        if failed := [rule for rule in rules if rule["health"] != "ok" or rule["state"] == "firing"]:
            raise SystemExit(f"failed or firing: {failed}")
        targets = [it for panel in json.loads(DASHBOARD.read_text())["panels"] for it in panel.get("targets", [])]
        for target in targets:
            expression = target["expr"]
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            labels = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            for series in query(expression):
                if missing := set(labels) - set(series["metric"]):
                    raise SystemExit(f"{expression} has no {missing} for its legend")
        print(f"Prometheus evaluates {len(rules)} alerts and {len(targets)} queries of the dashboard")
    finally:
        process.terminate()
        process.wait(TIMEOUT_SECONDS)


with tempfile.TemporaryDirectory() as data:
    check(sys.argv[1], sys.argv[2], data)
