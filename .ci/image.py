"""Makes the image of the Dockerfile by hand and runs it.

What the build may see is copied out of the last commit by the rules of .dockerignore,
the build's own command is run there, and what it makes is put beside the few files
that the base image has. The program then runs in there as process 1 of the image's
user, with the image's settings, and is asked, told to end, and watched.
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

# What gcr.io/distroless/cc-debian12 has of libraries, by the packages of Debian.
LIBRARIES = {"libc6", "libgcc-s1", "libstdc++6", "libgomp1"}
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
BOUND = 60
ROOT = [] if os.getuid() == 0 else ["sudo"]


def said(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def fresh(path):
    subprocess.run([*ROOT, "rm", "-rf", path], check=True)
    path.mkdir(parents=True)
    return path


def context(home):
    """What docker would send to be built."""
    tree = fresh(home / "tree")
    archive = subprocess.run(["git", "archive", "HEAD"], check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", tree], check=True, input=archive)
    rules = (tree / ".dockerignore").read_text().splitlines()
    rules = [rule for rule in rules if rule and not rule.startswith("#")]
    place = fresh(home / "context")
    for name in exclude_paths(str(tree), rules):
        if (tree / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, place / name)
    return place


def build(dockerfile, place, home, profile):
    """Runs what the build runs; what it made."""
    made = fresh(home / "made")
    (command,) = [line["value"] for line in dockerfile.structure if line["instruction"] == "RUN"]
    command = re.sub(r"--mount=\S+", "", command).replace("/image", str(made))
    # Not within what is built, so that what was built before is not built again.
    target = os.environ.get("CARGO_TARGET_DIR", pathlib.Path("target").absolute())
    environment = {**os.environ, "PROFILE": profile, "CARGO_TARGET_DIR": str(target)}
    environment["EXPERTISE_COMMIT"] = said("git", "rev-parse", "HEAD").strip()
    subprocess.run(["sh", "-ec", command], check=True, cwd=place, env=environment)
    return made


def fill(made, home, user):
    """The image's files, and that the base image brings what the program needs."""
    root = fresh(home / "root")
    shutil.copytree(made, root, dirs_exist_ok=True)
    program = made / "usr/local/bin/expertise"
    libraries = re.findall(r"(/\S+) \(0x", said("ldd", program))
    for library in libraries:
        # By its name: the path that Debian knows may lead there by a link.
        owners = said("dpkg", "-S", "*/" + os.path.basename(os.path.realpath(library)))
        owners = {line.split(":")[0] for line in owners.splitlines()}
        if not owners & LIBRARIES:
            raise SystemExit(f"{library} of {owners} is not in the base image")
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(library), root / library[1:])
    print("   needs", ", ".join(os.path.basename(library) for library in libraries))
    print("   size of the program:", program.stat().st_size >> 20, "MiB")
    (root / CERTIFICATES[1:]).parent.mkdir(parents=True)
    shutil.copy(CERTIFICATES, root / CERTIFICATES[1:])
    (root / "proc").mkdir()
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text(f"nonroot:x:{user}:{user}:nonroot:/home/nonroot:/sbin/nologin\n")
    subprocess.run([*ROOT, "chown", f"{user}:{user}", root / "var/lib/expertise"], check=True)
    # All else is root's and cannot be written to.
    subprocess.run([*ROOT, "chmod", "-R", "go-w", root / "usr", root / "etc"], check=True)
    return root


class Image:
    """The image, ready to run."""

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
        """A command in the image, in processes of its own."""
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
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=BOUND)


def refuses_to_guess(image):
    refused = image.run()
    if refused.returncode != 2 or "EXPERTISE_AUTH" not in refused.stderr:
        raise SystemExit(f"it starts without EXPERTISE_AUTH: {refused}")
    print("   does not start before EXPERTISE_AUTH is set")


def understands(image, settings):
    """The settings of a deployment are settings, and are right together."""
    known = set(re.findall(r"\[(EXPERTISE_\w+)\]", image.run("--help").stdout))
    unknown = set(settings) - known
    if unknown:
        raise SystemExit(f"no settings: {unknown}")
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


def serves(image):
    """It starts, is healthy, keeps its data, and ends by itself with code 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"EXPERTISE_AUTH": "header", "EXPERTISE_LISTEN": f"0.0.0.0:{port}"}
    command = image.command(image.entry, settings)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as server:
        try:
            print("  ", server.stdout.readline().strip())
            asked = image.command(image.health, settings)
            subprocess.run(asked, check=True, timeout=BOUND)
            print("   is healthy by", *image.health)
            inside = only_child(server.pid)
            subprocess.run([*ROOT, "kill", f"-{image.stop.value}", str(inside)], check=True)
            code = server.wait(BOUND)
        finally:
            if server.poll() is None:
                subprocess.run([*ROOT, "kill", "-KILL", str(server.pid)], check=False)
    if code:
        raise SystemExit(f"it ended with {code}")
    print("   ends with code 0 when it is told to")
    if not subprocess.run(asked, stderr=subprocess.DEVNULL, timeout=BOUND).returncode:
        raise SystemExit("it is healthy after its end")
    print("   is not healthy then")
    data = image.root / "var/lib/expertise/expertise.db"
    if data.stat().st_uid != int(image.user):
        raise SystemExit("the data is somebody else's")
    print("   has left its data as the image's user")


def only_child(process):
    """The program below sudo and unshare."""
    begun = time.monotonic()
    while time.monotonic() - begun < BOUND:
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
    print("   is built of", ", ".join(sorted(file.name for file in place.iterdir())))
    made = build(dockerfile, place, given.home, given.profile)
    user = {line["instruction"]: line["value"] for line in dockerfile.structure}["USER"]
    image = Image(dockerfile, fill(made, given.home, user.split(":")[0]))
    refuses_to_guess(image)
    for settings in deployments():
        understands(image, settings)
    serves(image)


main()
