"""Checks the metrics of a server with Prometheus.

Usage: metrics.py METRICS_ADDRESS DIRECTORY

DIRECTORY has prometheus. The server has answered one ListTasks.
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


class Prometheus:
    """A Prometheus that scrapes the server each second."""

    def __init__(self, address: str, program: str, directory: str) -> None:
        config = pathlib.Path(directory, "prometheus.yml")
        settings = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [
                {"job_name": "expertise", "static_configs": [{"targets": [address]}]}
            ],
        }
        # JSON is YAML, too.
        config.write_text(json.dumps(settings))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            own = f"127.0.0.1:{free.getsockname()[1]}"
        self._api = f"http://{own}/api/v1"
        self._log = pathlib.Path(directory, "log")
        options = [
            f"--config.file={config}",
            f"--storage.tsdb.path={directory}/data",
            f"--web.listen-address={own}",
            "--log.level=warn",
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([program, *options], stdout=log, stderr=log)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(TIMEOUT_SECONDS)

    def get(self, path: str, **parameters: str):
        url = f"{self._api}/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            return json.load(response)["data"]

    def query(self, expression: str) -> list:
        try:
            return self.get("query", query=expression)["result"]
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{expression}: {error.read().decode()}") from error

    def wait_for(self, what: str, get):
        """Repeats a question until it has an answer."""
        begun = time.monotonic()
        while time.monotonic() - begun < TIMEOUT_SECONDS and self._process.poll() is None:
            try:
                if answer := get():
                    return answer
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    raise
            except urllib.error.URLError:
                pass
            time.sleep(0.2)
        raise SystemExit(f"no {what}: {self._log.read_text()}")


def check_scrape(prometheus: Prometheus) -> None:
    def scraped():
        targets = prometheus.get("targets")["activeTargets"]
        return [target for target in targets if target["health"] != "unknown"]

    (target,) = prometheus.wait_for("scrape", scraped)
    if target["health"] != "up":
        raise SystemExit(f"the scrape fails: {target['lastError']}")
    print("Prometheus scrapes the server")
    (counted,) = prometheus.wait_for("counted call", lambda: prometheus.query(COUNTED))
    if counted["value"][1] != "1":
        raise SystemExit(f"not one call: {counted}")


def check_alerts(prometheus: Prometheus) -> None:
    def evaluated():
        groups = prometheus.get("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return rules if all(rule["health"] != "unknown" for rule in rules) else None

    rules = prometheus.wait_for("evaluation of alerts", evaluated)
    failed = [rule for rule in rules if rule["health"] != "ok"]
    firing = [rule["name"] for rule in rules if rule["state"] == "firing"]
    if failed or firing or not rules:
        raise SystemExit(f"failed: {failed}, firing: {firing}")
    print(f"{len(rules)} alerts are evaluated")


def check_dashboard(prometheus: Prometheus) -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    targets = [target for panel in panels for target in panel.get("targets", [])]
    for target in targets:
        expression = target["expr"]
        for variable, value in VARIABLES.items():
            expression = expression.replace(variable, value)
        labels = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
        for series in prometheus.query(expression):
            missing = [label for label in labels if label not in series["metric"]]
            if missing:
                raise SystemExit(f"{expression} has no {missing} for its legend")
    print(f"{len(targets)} queries of the dashboard are answered")


def main() -> None:
    address, directory = sys.argv[1:]
    with tempfile.TemporaryDirectory() as data:
        prometheus = Prometheus(address, f"{directory}/prometheus", data)
        try:
            check_scrape(prometheus)
            check_alerts(prometheus)
            check_dashboard(prometheus)
        finally:
            prometheus.stop()


if __name__ == "__main__":
    main()
