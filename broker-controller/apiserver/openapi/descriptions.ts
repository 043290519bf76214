/** One sentence for the types and fields that need one in `kubectl explain`: what Bramble does with them. */

const metadata = "Standard object's metadata: name, labels, annotations and what the API server adds."
const spec = 'What is wanted.'
const status = 'What was observed last.'

const descriptions: { readonly [place: string]: string } = {
  'io.k8s.api.core.v1.Pod': 'Containers that run together on one node.',
  'io.k8s.api.core.v1.PodSpec.containers': 'The containers that run until the pod ends; at least one.',
  'io.k8s.api.core.v1.PodSpec.initContainers':
    'Containers that run before the others, one after the other; those with restartPolicy Always keep running.',
  'io.k8s.api.core.v1.PodSpec.ephemeralContainers': 'Containers that "kubectl debug" adds to a running pod.',
  'io.k8s.api.core.v1.PodSpec.volumes': 'The directories that containers mount.',
  'io.k8s.api.core.v1.PodSpec.nodeName': 'The node that runs the pod; set by the scheduler when it is empty.',
  'io.k8s.api.core.v1.PodSpec.nodeSelector': 'Labels that the node must have.',
  'io.k8s.api.core.v1.PodSpec.restartPolicy': 'When ended containers are started again: Always, OnFailure or Never.',
  'io.k8s.api.core.v1.PodSpec.terminationGracePeriodSeconds':
    'Seconds between the signal to stop and the signal to kill.',
  'io.k8s.api.core.v1.PodSpec.tolerations': 'The taints of nodes that do not keep this pod away.',
  'io.k8s.api.core.v1.PodSpec.priorityClassName': 'The PriorityClass that decides which pod makes room for which.',
  'io.k8s.api.core.v1.Container': 'A process tree with an image as its file system.',
  'io.k8s.api.core.v1.Container.name': 'Unique among the containers of the pod.',
  'io.k8s.api.core.v1.Container.image': 'The image reference that Docker pulls.',
  'io.k8s.api.core.v1.Container.command': 'Replaces the entry point of the image.',
  'io.k8s.api.core.v1.Container.args': 'Replaces the arguments of the image.',
  'io.k8s.api.core.v1.Container.env': 'Environment variables.',
  'io.k8s.api.core.v1.Container.ports': 'The ports that the container listens on.',
  'io.k8s.api.core.v1.Container.resources': 'CPU, memory and storage that are reserved, and the most that may be used.',
  'io.k8s.api.core.v1.Container.volumeMounts': 'Where volumes of the pod appear in the container.',
  'io.k8s.api.core.v1.Container.volumeDevices': 'Where block volumes of the pod appear in the container, as devices.',
  'io.k8s.api.core.v1.Container.livenessProbe': 'A check whose failure restarts the container.',
  'io.k8s.api.core.v1.Container.readinessProbe': 'A check whose failure makes the pod unready.',
  'io.k8s.api.core.v1.Container.startupProbe': 'A check that holds back the other two until it succeeds.',
  'io.k8s.api.core.v1.Container.imagePullPolicy': 'When the image is pulled: Always, IfNotPresent or Never.',
  'io.k8s.api.core.v1.Node': 'A machine that runs pods.',
  'io.k8s.api.core.v1.NodeSpec.unschedulable': 'New pods are kept away; set by "kubectl cordon".',
  'io.k8s.api.core.v1.NodeSpec.taints': 'Keep away, or evict, the pods that do not tolerate them.',
  'io.k8s.api.core.v1.Namespace': 'A scope of names for the objects in it.',
  'io.k8s.api.core.v1.ConfigMap': 'Configuration that pods read as files or environment variables.',
  'io.k8s.api.core.v1.ConfigMap.data': 'Text by key.',
  'io.k8s.api.core.v1.ConfigMap.binaryData': 'Bytes by key, in base64.',
  'io.k8s.api.core.v1.ConfigMap.immutable': 'Once true, data cannot be changed.',
  'io.k8s.api.core.v1.Secret': 'Confidential data that pods read as files or environment variables.',
  'io.k8s.api.core.v1.Secret.data': 'Bytes by key, in base64.',
  'io.k8s.api.core.v1.Secret.stringData': 'Text by key; written into data, never read back.',
  'io.k8s.api.core.v1.Event': 'Something that happened to an object.',
  'io.k8s.api.coordination.v1.Lease': 'Who holds something, and until when; the heartbeat of a node.',
  'io.k8s.api.certificates.v1.CertificateSigningRequest': 'A request for a certificate, to be approved or denied.',
  'io.k8s.api.policy.v1.PodDisruptionBudget': 'How many pods of a group an eviction must leave.',
  'io.k8s.api.scheduling.v1.PriorityClass': 'A name for a priority of pods.',
  'io.k8s.api.rbac.v1.Role': 'Permissions in one namespace.',
  'io.k8s.api.rbac.v1.RoleBinding': 'Gives the permissions of a role to users, groups and accounts in one namespace.',
  'io.k8s.api.rbac.v1.ClusterRole': 'Permissions in all namespaces and on objects outside of namespaces.',
  'io.k8s.api.rbac.v1.ClusterRoleBinding': 'Gives the permissions of a role to users, groups and accounts everywhere.',
  'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta': metadata,
  'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta.creationTimestamp':
    'CreationTimestamp is a timestamp: when the API server stored the object.',
  'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta.labels': 'Short texts by key that selectors find the object by.',
  'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta.annotations': 'Texts by key that tools attach.',
  'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta.finalizers':
    'The object stays until each of these is removed, after it was deleted.',
  'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta.ownerReferences':
    'The object is deleted when all these objects are gone.',
}

const ofEveryKind: { readonly [field: string]: string } = {
  apiVersion: 'APIVersion defines the group and version of this schema.',
  kind: 'Kind is the name of this schema.',
  metadata,
  spec,
  status,
}

/** Description of a type or of one of its fields. `isKind`: objects of the type have metadata. */
export function descriptionOf(type: string, field?: string, isKind = false): string | undefined {
  if (field === undefined) return own(descriptions, type)
  return own(descriptions, `${type}.${field}`) ?? (isKind ? own(ofEveryKind, field) : undefined)
}

function own(table: { readonly [name: string]: string }, name: string): string | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}
