"""Builds the image of the Dockerfile without Docker, and runs what is in it.

Usage: image.py PROFILE HOME

Runs the command of the Dockerfile on the files of the last commit that .dockerignore admits,
and puts the result into a directory with the libraries of the base image. There, with the
image's user and settings, the binary accepts the settings of the deployments, starts, is
healthy, and stops.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

import dockerfile_parse
import yaml
from docker.utils.build import exclude_paths

# The Debian packages whose libraries gcr.io/distroless/cc-debian12 has.
LIBRARIES = {"libc6", "libgcc-s1", "libstdc++6", "libgomp1"}
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
TIMEOUT_SECONDS = 60
AS_ROOT = [] if os.getuid() == 0 else ["sudo"]


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def empty_directory(path):
    subprocess.run([*AS_ROOT, "rm", "-rf", path], check=True)
    path.mkdir(parents=True)
    return path


def context(home):
    """The files that docker would send to the build."""
    tree, place = empty_directory(home / "tree"), empty_directory(home / "context")
    archive = subprocess.run(["git", "archive", "HEAD"], check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", tree], check=True, input=archive)
    rules = (tree / ".dockerignore").read_text().splitlines()
    for name in exclude_paths(str(tree), [rule for rule in rules if rule and rule[0] != "#"]):
        if (tree / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, place / name)
    return place


def build(command, profile, home):
    """Runs the command of the Dockerfile; the directory with its results."""
    root = empty_directory(home / "root")
    command = re.sub(r"--mount=\S+", "", command).replace("/image", str(root))
    # Outside of the copied files, so that builds are incremental.
    target = os.environ.get("CARGO_TARGET_DIR", str(pathlib.Path("target").absolute()))
    commit = output_of("git", "rev-parse", "HEAD").strip()
    settings = {"PROFILE": profile, "CARGO_TARGET_DIR": target, "EXPERTISE_COMMIT": commit}
    subprocess.run(["sh", "-ec", command], check=True, cwd=context(home), env={**os.environ, **settings})
    return root


def add_base_image(root, user):
    """Adds what the base image has; fails if that lacks a library of the binary."""
    libraries = re.findall(r"(/\S+) \(0x", output_of("ldd", root / "usr/local/bin/expertise"))
    for library in libraries:
        # By file name, as Debian may know the library by the path of a symbolic link.
        owners = output_of("dpkg", "-S", "*/" + os.path.basename(os.path.realpath(library)))
        owners = {line.split(":")[0] for line in owners.splitlines()}
        if not owners & LIBRARIES:
            raise SystemExit(f"{library} of {owners} is not in the base image")
    for file in [*libraries, "/" + CERTIFICATES]:
        (root / file[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(file), root / file[1:])
    subprocess.run([*AS_ROOT, "chown", user, root / "var/lib/expertise"], check=True)


def deployments():
    """The settings of each deployment."""
    compose = yaml.safe_load(pathlib.Path("compose.yaml").read_text())
    environment = compose["services"]["expertise"]["environment"]
    yield {name: re.sub(r"\$\{.*\}", "secret", text) for name, text in environment.items()}
    text = pathlib.Path("docs/deploy/kubernetes/deployment.yaml").read_text()
    (container,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    secret = "postgres://expertise:secret@postgres/expertise"
    yield {entry["name"]: entry.get("value", secret) for entry in container["env"]}


def check(fact, truth):
    if not truth:
        raise SystemExit(f"wrong: {fact}")
    print(f"   {fact}")


def main():
    profile, home = sys.argv[1], pathlib.Path(sys.argv[2])
    dockerfile = dockerfile_parse.DockerfileParser("Dockerfile")
    value = {line["instruction"]: line["value"] for line in dockerfile.structure}
    user, group = value["USER"].split(":")
    root = build(value["RUN"], profile, home)
    add_base_image(root, value["USER"])

    def command(words, **settings):
        settings = {"PATH": "/usr/local/bin", **dockerfile.envs, **settings}
        inside = [shutil.which("unshare"), f"--root={root}", f"--wd={value['WORKDIR']}"]
        inside += [f"--setuid={user}", f"--setgid={group}", "/usr/local/bin/" + words[0], *words[1:]]
        return [*AS_ROOT, "env", "-i", *[f"{name}={text}" for name, text in settings.items()], *inside]

    def run(*words, **settings):
        return subprocess.run(command(words, **settings), capture_output=True, text=True, timeout=TIMEOUT_SECONDS)

    refused = run("expertise")
    check("it does not start before EXPERTISE_AUTH is set", refused.returncode == 2 and "EXPERTISE_AUTH" in refused.stderr)
    known = set(re.findall(r"\[(EXPERTISE_\w+)\]", run("expertise", "--help").stdout))
    for settings in deployments():
        check(f"there are the settings {', '.join(settings)}", set(settings) <= known)
        refusal = run("expertise", "config", **settings).stderr
        check(f"they are valid {refusal}", not refusal)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        settings = {"EXPERTISE_AUTH": "header", "EXPERTISE_LISTEN": f"0.0.0.0:{free.getsockname()[1]}"}
    health = json.loads(value["HEALTHCHECK"].partition("CMD ")[2])
    server = subprocess.Popen(command(json.loads(value["ENTRYPOINT"]), **settings), stdout=subprocess.PIPE, text=True)
    try:
        check(server.stdout.readline().strip(), run(*health, **settings).returncode == 0)
        stop = getattr(signal, value["STOPSIGNAL"])
        subprocess.run([*AS_ROOT, "kill", f"-{stop.value}", str(server.pid)], check=True)
        check("it ends with code 0 after the signal", server.wait(TIMEOUT_SECONDS) == 0)
    finally:
        if server.poll() is None:
            subprocess.run([*AS_ROOT, "kill", "-KILL", str(server.pid)], check=False)
    check("it is not healthy after that", run(*health, **settings).returncode)
    data = root / value["WORKDIR"][1:] / "expertise.db"
    check("its data belongs to the image's user", data.stat().st_uid == int(user))


main()
