"""The client of Debian's python3-pykube-ng against a fleet: pykube_client.py KUBECONFIG IMAGE. Prints a line for each step."""

import sys
import time

import pykube

kubeconfig, image = sys.argv[1:]
api = pykube.HTTPClient(pykube.KubeConfig.from_file(kubeconfig))
namespace = "pykube"


def step(name):
    print(name, flush=True)


def within(what, condition):
    for _ in range(450):
        if condition():
            return
        time.sleep(0.2)
    raise AssertionError(f"Not within 90 s: {what}")


assert api.version[0] == "1", api.version
pykube.Namespace(api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}).create()
pod = pykube.Pod(
    api,
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "first", "namespace": namespace, "labels": {"app": "first"}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": image, "command": ["sh", "-c", "echo started; exec sleep 1000"]}],
        },
    },
)
pod.create()
pods = pykube.Pod.objects(api).filter(namespace=namespace, selector={"app": "first"})
for event in pods.watch():
    if event.object.ready:
        break
step("create and watch")

within("the log is there", lambda: pod.logs() == "started\n")
assert [one.name for one in pods] == ["first"]
assert pykube.Pod.objects(api, namespace=namespace).get_or_none(name="none") is None
assert [one.name for one in pykube.Pod.objects(api).filter(namespace=pykube.all, field_selector={"metadata.name": "first"})] == ["first"]
table = pods.as_table()
assert [column["name"] for column in table.columns][:3] == ["Name", "Ready", "Status"], table.columns
assert table.rows[0]["cells"][:3] == ["first", "1/1", "Running"], table.rows
step("log, list, table")

pod.reload()
pod.labels["changed"] = "yes"
pod.update()
pod.reload()
assert pod.labels == {"app": "first", "changed": "yes"}, pod.labels
pod.patch({"metadata": {"labels": {"changed": None}}})
assert pod.labels == {"app": "first"}, pod.labels
step("update and patch")



def set_unschedulable(node, value):
    # Its update contains the version that it has read, and others change a node, too.
    while True:
        node.reload()
        try:
            node.unschedulable = value
            return
        except pykube.exceptions.HTTPError as refused:
            assert refused.code == 409, refused


for node in pykube.Node.objects(api):
    set_unschedulable(node, True)
    assert node.unschedulable
    set_unschedulable(node, False)
    assert not node.unschedulable
step("cordon")

# Discovery gives it the class of a kind.
Lease = pykube.object_factory(api, "coordination.k8s.io/v1", "Lease")
assert [one.obj["spec"]["holderIdentity"] for one in Lease.objects(api).filter(namespace="kube-node-lease")]
step("object factory")

try:
    pykube.Pod(api, {**pod.obj, "metadata": {"name": "first", "namespace": namespace}}).create()
    raise AssertionError("a pod was created twice")
except pykube.exceptions.HTTPError as refused:
    assert refused.code == 409, refused.code
pod.delete(propagation_policy="Background")
within("the pod is deleted", lambda: not pod.exists())
step("delete")
