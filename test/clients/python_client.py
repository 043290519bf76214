"""The client of Debian's python3-kubernetes against a fleet: python_client.py KUBECONFIG IMAGE. Prints a line for each step."""

import json
import sys
import tempfile
import threading
import time
import uuid

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock
from kubernetes.stream import portforward, stream

kubeconfig, image = sys.argv[1:]
config.load_kube_config(kubeconfig)
core = client.CoreV1Api()
namespace = "python"


def step(name):
    print(name, flush=True)


def pod(name, **more):
    container = client.V1Container(
        name="main", image=image, command=["sh", "-c", "echo started; exec nc -ll -p 8080 -e cat"]
    )
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels={"app": name}),
        spec=client.V1PodSpec(termination_grace_period_seconds=1, containers=[container], **more),
    )


def wait_until_running(name):
    for event in watch.Watch().stream(
        core.list_namespaced_pod, namespace, field_selector=f"metadata.name={name}", timeout_seconds=90
    ):
        if event["object"].status.phase == "Running":
            return
    raise AssertionError(f"{name} does not run")


def wait_for_log(name, text):
    """A container runs a moment before it prints."""
    end = time.monotonic() + 60
    while (log := core.read_namespaced_pod_log(name, namespace)) != text:
        assert time.monotonic() < end and text.startswith(log), log
        time.sleep(0.2)


# Typed models send neither kind nor apiVersion.
core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=namespace)))
created = core.create_namespaced_pod(namespace, pod("typed"))
assert created.status.phase == "Pending", created.status.phase
wait_until_running("typed")
step("typed create and watch")

wait_for_log("typed", "started\n")
out = stream(
    core.connect_get_namespaced_pod_exec,
    "typed",
    namespace,
    command=["sh", "-c", "cat; exit 3"],
    stdin=True,
    stdout=True,
    stderr=True,
    tty=False,
    _preload_content=False,
)
out.write_stdin("to the container\n")
out.update(timeout=10)
while not out.peek_stdout():
    out.update(timeout=1)
assert out.read_stdout() == "to the container\n"
out.close()
failed = stream(
    core.connect_get_namespaced_pod_exec,
    "typed",
    namespace,
    command=["sh", "-c", "exit 3"],
    stdout=True,
    stderr=True,
    stdin=False,
    tty=False,
    _preload_content=False,
)
failed.run_forever(timeout=20)
assert failed.returncode == 3, failed.returncode
step("log and exec")

forward = portforward(core.connect_get_namespaced_pod_portforward, "typed", namespace, ports="8080")
socket = forward.socket(8080)
socket.settimeout(20)
socket.sendall(b"through the port\n")
assert socket.recv(64) == b"through the port\n"
socket.close()
step("port-forward")

patched = core.patch_namespaced_pod("typed", namespace, {"metadata": {"labels": {"patched": "yes"}}})
assert patched.metadata.labels == {"app": "typed", "patched": "yes"}, patched.metadata.labels
items = core.list_namespaced_pod(namespace, label_selector="patched=yes", limit=1)
assert [one.metadata.name for one in items.items] == ["typed"]
config_map = core.create_namespaced_config_map(
    namespace, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings"), data={"a": "1"})
)
config_map.data["a"] = "2"
assert core.replace_namespaced_config_map("settings", namespace, config_map).data == {"a": "2"}
try:
    core.replace_namespaced_config_map("settings", namespace, config_map)
    raise AssertionError("a replace of an old version was accepted")
except ApiException as refused:
    assert refused.status == 409, refused.status
step("patch, list, replace, conflict")

with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
    file.write(
        f"""apiVersion: v1
kind: ConfigMap
metadata: {{name: from-yaml, namespace: {namespace}}}
data: {{key: value}}
---
apiVersion: v1
kind: Service
metadata: {{name: from-yaml, namespace: {namespace}}}
spec:
  selector: {{app: typed}}
  ports: [{{port: 80}}]
"""
    )
    file.flush()
    utils.create_from_yaml(client.ApiClient(), file.name)
assert core.read_namespaced_config_map("from-yaml", namespace).data == {"key": "value"}
assert core.read_namespaced_service("from-yaml", namespace).spec.cluster_ip
step("create_from_yaml")

discovered = dynamic.DynamicClient(client.ApiClient())
pods = discovered.resources.get(api_version="v1", kind="Pod")
body = client.ApiClient().sanitize_for_serialization(pod("dynamic"))
pods.create(body={"apiVersion": "v1", "kind": "Pod", **body}, namespace=namespace)
for event in pods.watch(namespace=namespace, field_selector="metadata.name=dynamic", timeout=90):
    if event["object"].status.phase == "Running":
        break
settings = discovered.resources.get(api_version="v1", kind="ConfigMap")
# This version of the client sends an apply only as a text.
applied = settings.server_side_apply(
    body=json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}),
    name="applied",
    namespace=namespace,
    field_manager="python",
)
assert applied.data.a == "1"
assert [(one.manager, one.operation) for one in applied.metadata.managedFields] == [("python", "Apply")]
step("dynamic client")

led = threading.Event()
lock = ConfigMapLock("leader", namespace, f"candidate-{uuid.uuid4()}")
election = leaderelection.LeaderElection(
    electionconfig.Config(
        lock, lease_duration=3, renew_deadline=2, retry_period=1, onstarted_leading=led.set, onstopped_leading=None
    )
)
threading.Thread(target=election.run, daemon=True).start()
assert led.wait(30), "no leader"
step("leader election")

version = core.list_namespaced_pod(namespace).metadata.resource_version
core.delete_namespaced_pod("typed", namespace)
for event in watch.Watch().stream(
    core.list_namespaced_pod, namespace, resource_version=version, timeout_seconds=60
):
    if event["type"] == "DELETED" and event["object"].metadata.name == "typed":
        break
else:
    raise AssertionError("the pod was not deleted")
core.delete_namespace(namespace)
step("delete")
