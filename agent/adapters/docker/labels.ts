/** The identity of a container in its labels: those of dockershim, and the node. */
import type { ContainerIdentity } from '../../runtime/runtime.ts'

export const nodeLabel = 'bramble.dev/node'

const names = {
  podName: 'io.kubernetes.pod.name',
  podNamespace: 'io.kubernetes.pod.namespace',
  podUID: 'io.kubernetes.pod.uid',
  containerName: 'io.kubernetes.container.name',
  kind: 'io.kubernetes.docker.type',
  sandboxID: 'io.kubernetes.sandbox.id',
  specHash: 'annotation.io.kubernetes.container.hash',
  attempt: 'annotation.io.kubernetes.container.restartCount',
  gracePeriodSeconds: 'annotation.io.kubernetes.pod.terminationGracePeriod',
  node: nodeLabel,
} as const

type Labels = { readonly [name: string]: string | undefined }

/** The labels that Docker's answers are read for. */
export const ownLabels = {
  [names.podName]: 'text',
  [names.podNamespace]: 'text',
  [names.podUID]: 'text',
  [names.containerName]: 'text',
  [names.kind]: 'text',
  [names.sandboxID]: 'text',
  [names.specHash]: 'text',
  [names.attempt]: 'text',
  [names.gracePeriodSeconds]: 'text',
  [names.node]: 'text',
} as const

export function labelsOf(
  nodeName: string,
  identity: ContainerIdentity,
  sandboxID?: string,
): { [name: string]: string } {
  return {
    [names.node]: nodeName,
    [names.podName]: identity.podName,
    [names.podNamespace]: identity.podNamespace,
    [names.podUID]: identity.podUID,
    [names.kind]: identity.kind === 'sandbox' ? 'podsandbox' : 'container',
    [names.containerName]: identity.kind === 'sandbox' ? 'POD' : identity.containerName,
    [names.specHash]: identity.specHash,
    [names.attempt]: String(identity.attempt),
    [names.gracePeriodSeconds]: String(identity.gracePeriodSeconds),
    ...(sandboxID === undefined ? {} : { [names.sandboxID]: sandboxID }),
  }
}

/** undefined: Bramble did not create the container. */
export function identityOf(labels: Labels): ContainerIdentity | undefined {
  const podUID = labels[names.podUID]
  if (podUID === undefined) return undefined
  const kind = labels[names.kind] === 'podsandbox' ? 'sandbox' : 'container'
  return {
    kind,
    podUID,
    podName: labels[names.podName] ?? '',
    podNamespace: labels[names.podNamespace] ?? '',
    containerName: kind === 'sandbox' ? '' : (labels[names.containerName] ?? ''),
    attempt: wholeNumber(labels[names.attempt], 0),
    specHash: labels[names.specHash] ?? '',
    gracePeriodSeconds: wholeNumber(labels[names.gracePeriodSeconds], 30),
  }
}

export function sandboxOf(labels: Labels): string | undefined {
  return labels[names.sandboxID]
}

/** A filter for lists and events: the containers of this node, or of one of its pods. */
export function labelFilter(nodeName: string, podUID?: string): readonly string[] {
  return [`${names.node}=${nodeName}`, ...(podUID === undefined ? [] : [`${names.podUID}=${podUID}`])]
}

/** Container names in the format of dockershim (pkg/kubelet/dockershim/naming.go). */
export function containerName(identity: ContainerIdentity): string {
  const { podName, podNamespace, podUID, attempt } = identity
  const container = identity.kind === 'sandbox' ? 'POD' : identity.containerName
  return ['k8s', container, podName, podNamespace, podUID, attempt].join('_')
}

function wholeNumber(text: string | undefined, otherwise: number): number {
  const number = Number(text)
  return text !== undefined && Number.isInteger(number) && number >= 0 ? number : otherwise
}
