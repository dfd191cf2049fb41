"""Builds and runs the image of the Dockerfile without Docker.

Copies the files of the last commit that .dockerignore admits, runs the command of the
Dockerfile there, and puts the result into a directory with the files of the base image.
Then starts the binary in that directory as process 1 and as the image's user, with the
image's settings, checks its health, and stops it.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import dockerfile_parse
import yaml
from docker.utils.build import exclude_paths

# The Debian packages whose libraries gcr.io/distroless/cc-debian12 has.
LIBRARIES = {"libc6", "libgcc-s1", "libstdc++6", "libgomp1"}
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
TIMEOUT_SECONDS = 60
ROOT = [] if os.getuid() == 0 else ["sudo"]


def output_of(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def empty_directory(path):
    subprocess.run([*ROOT, "rm", "-rf", path], check=True)
    path.mkdir(parents=True)
    return path


def context(home):
    """Copies the files that docker would send to the build."""
    tree = empty_directory(home / "tree")
    archive = subprocess.run(["git", "archive", "HEAD"], check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", tree], check=True, input=archive)
    rules = (tree / ".dockerignore").read_text().splitlines()
    rules = [rule for rule in rules if rule and not rule.startswith("#")]
    place = empty_directory(home / "context")
    for name in exclude_paths(str(tree), rules):
        if (tree / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, place / name)
    return place


def build(dockerfile, place, home, profile):
    """Runs the command of the Dockerfile; returns the directory with its results."""
    built = empty_directory(home / "built")
    (command,) = [line["value"] for line in dockerfile.structure if line["instruction"] == "RUN"]
    command = re.sub(r"--mount=\S+", "", command).replace("/image", str(built))
    # Outside of the copied files, so that builds are incremental.
    target = os.environ.get("CARGO_TARGET_DIR", pathlib.Path("target").absolute())
    environment = {**os.environ, "PROFILE": profile, "CARGO_TARGET_DIR": str(target)}
    environment["EXPERTISE_COMMIT"] = output_of("git", "rev-parse", "HEAD").strip()
    subprocess.run(["sh", "-ec", command], check=True, cwd=place, env=environment)
    return built


def fill(built, home, user):
    """Makes the image's files; fails if the base image lacks a library of the binary."""
    root = empty_directory(home / "root")
    shutil.copytree(built, root, dirs_exist_ok=True)
    program = built / "usr/local/bin/expertise"
    libraries = re.findall(r"(/\S+) \(0x", output_of("ldd", program))
    for library in libraries:
        # By file name, as Debian may know the library by the path of a symbolic link.
        owners = output_of("dpkg", "-S", "*/" + os.path.basename(os.path.realpath(library)))
        owners = {line.split(":")[0] for line in owners.splitlines()}
        if not owners & LIBRARIES:
            raise SystemExit(f"{library} of {owners} is not in the base image")
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(library), root / library[1:])
    print("   needs", ", ".join(os.path.basename(library) for library in libraries))
    print("   size of the binary:", program.stat().st_size >> 20, "MiB")
    (root / CERTIFICATES[1:]).parent.mkdir(parents=True)
    shutil.copy(CERTIFICATES, root / CERTIFICATES[1:])
    (root / "proc").mkdir()
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text(f"nonroot:x:{user}:{user}:nonroot:/home/nonroot:/sbin/nologin\n")
    subprocess.run([*ROOT, "chown", f"{user}:{user}", root / "var/lib/expertise"], check=True)
    # All other files belong to root and are read-only for the user.
    subprocess.run([*ROOT, "chmod", "-R", "go-w", root / "usr", root / "etc"], check=True)
    return root


class Image:
    """The files and settings of the image."""

    def __init__(self, dockerfile, root):
        value = {line["instruction"]: line["value"] for line in dockerfile.structure}
        self.root = root
        self.settings = dict(dockerfile.envs)
        self.directory = value["WORKDIR"]
        self.user, self.group = value["USER"].split(":")
        self.entry = json.loads(value["ENTRYPOINT"])
        self.health = json.loads(value["HEALTHCHECK"].partition("CMD ")[2])
        self.stop = getattr(signal, value["STOPSIGNAL"])

    def command(self, words, settings):
        """The command line that runs `words` in the image, in its own namespaces."""
        settings = {"PATH": "/usr/local/bin", **self.settings, **settings}
        inside = [
            *[shutil.which("unshare"), f"--root={self.root}", f"--wd={self.directory}"],
            *[f"--setuid={self.user}", f"--setgid={self.group}"],
            *["/usr/local/bin/" + words[0], *words[1:]],
        ]
        mounted = f"mount -t proc proc {self.root}/proc && exec env -i \"$@\""
        variables = [f"{name}={text}" for name, text in settings.items()]
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        return [*ROOT, *apart, "sh", "-ec", mounted, "sh", *variables, *inside]

    def run(self, *words, **settings):
        command = self.command([*self.entry, *words], settings)
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_SECONDS)


def check_requires_auth(image):
    refused = image.run()
    if refused.returncode != 2 or "EXPERTISE_AUTH" not in refused.stderr:
        raise SystemExit(f"it starts without EXPERTISE_AUTH: {refused}")
    print("   does not start before EXPERTISE_AUTH is set")


def check_settings(image, settings):
    """The settings of a deployment exist and are valid together."""
    known = set(re.findall(r"\[(EXPERTISE_\w+)\]", image.run("--help").stdout))
    unknown = set(settings) - known
    if unknown:
        raise SystemExit(f"unknown settings: {unknown}")
    config = image.run("config", **settings)
    if config.returncode:
        raise SystemExit(f"it does not start with {settings}: {config.stderr}")
    print("   starts with", ", ".join(sorted(settings)))


def deployments():
    compose = yaml.safe_load(pathlib.Path("compose.yaml").read_text())
    environment = compose["services"]["expertise"]["environment"]
    yield {name: re.sub(r"\$\{.*\}", "secret", text) for name, text in environment.items()}
    text = pathlib.Path("docs/deploy/kubernetes/deployment.yaml").read_text()
    (container,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    secret = "postgres://expertise:secret@postgres/expertise"
    yield {entry["name"]: entry.get("value", secret) for entry in container["env"]}


def check_serves(image):
    """It starts, is healthy, stores its data, and ends with code 0 after the signal."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"EXPERTISE_AUTH": "header", "EXPERTISE_LISTEN": f"0.0.0.0:{port}"}
    command = image.command(image.entry, settings)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as server:
        try:
            print("  ", server.stdout.readline().strip())
            health = image.command(image.health, settings)
            subprocess.run(health, check=True, timeout=TIMEOUT_SECONDS)
            print("   is healthy by", *image.health)
            inside = only_child(server.pid)
            subprocess.run([*ROOT, "kill", f"-{image.stop.value}", str(inside)], check=True)
            code = server.wait(TIMEOUT_SECONDS)
        finally:
            if server.poll() is None:
                subprocess.run([*ROOT, "kill", "-KILL", str(server.pid)], check=False)
    if code:
        raise SystemExit(f"it ended with {code}")
    print("   ends with code 0 after the signal")
    if not subprocess.run(health, stderr=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS).returncode:
        raise SystemExit("it is healthy after it has ended")
    print("   is not healthy after that")
    data = image.root / "var/lib/expertise/expertise.db"
    if data.stat().st_uid != int(image.user):
        raise SystemExit("the data does not belong to the image's user")
    print("   its data belongs to the image's user")


def only_child(process):
    """The process that sudo and unshare started."""
    begun = time.monotonic()
    while time.monotonic() - begun < TIMEOUT_SECONDS:
        children = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
        if not children:
            return process
        process = int(children[0])
    raise SystemExit("no process")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--profile", required=True)
    arguments.add_argument("--home", required=True, type=pathlib.Path)
    given = arguments.parse_args()
    dockerfile = dockerfile_parse.DockerfileParser("Dockerfile")
    place = context(given.home)
    print("   is built from", ", ".join(sorted(file.name for file in place.iterdir())))
    built = build(dockerfile, place, given.home, given.profile)
    user = {line["instruction"]: line["value"] for line in dockerfile.structure}["USER"]
    image = Image(dockerfile, fill(built, given.home, user.split(":")[0]))
    check_requires_auth(image)
    for settings in deployments():
        check_settings(image, settings)
    check_serves(image)


main()
