/** On which nodes the pods of a DaemonSet run, and how the scheduler is led there (pkg/controller/daemon/util/daemonset_util.go). Pure. */
import type { Node, Taint } from '../../../../api/node.ts'
import { schedulingEffects, untolerated } from '../../../../api/pod/tolerations.ts'
import type { Pod, PodSpec, PodTemplateSpec, Toleration } from '../../../../api/pod.ts'
import { matchesNodeSelectorTerms } from '../../../../api/selectors.ts'
import { revisionLabel } from '../history/revisions.ts'

export type DaemonPlacement = {
  /** A pod belongs on the node. */
  readonly shouldRun: boolean
  /** One that is there already stays, although no other would be placed. */
  readonly shouldContinue: boolean
}

/** NodeShouldRunDaemonPod in pkg/controller/daemon/daemon_controller.go. */
export function daemonPlacement({ spec }: PodTemplateSpec, node: Node): DaemonPlacement {
  const { name } = node.metadata
  const isElsewhere = (spec.nodeName ?? '') !== '' && spec.nodeName !== name
  if (isElsewhere || !isWantedOn(spec, node)) return { shouldRun: false, shouldContinue: false }
  const tolerations = knownTolerations(spec)
  const taints: readonly Taint[] = node.spec?.taints ?? []
  return {
    shouldRun: untolerated(taints, tolerations, schedulingEffects).length === 0,
    shouldContinue: untolerated(taints, tolerations, ['NoExecute']).length === 0,
  }
}

const known = new WeakMap<PodSpec, readonly Toleration[]>()

/** Templates are frozen: those of each are read once, not for each node. */
function knownTolerations(spec: PodSpec): readonly Toleration[] {
  const tolerations = known.get(spec) ?? daemonTolerations(spec)
  known.set(spec, tolerations)
  return tolerations
}

function isWantedOn({ nodeSelector = {}, affinity }: PodSpec, node: Node): boolean {
  const labels = node.metadata.labels ?? {}
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  return (
    Object.entries(nodeSelector).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value) &&
    (required === undefined || matchesNodeSelectorTerms(required.nodeSelectorTerms, node))
  )
}

const taintsOfNodes = [
  ['node.kubernetes.io/not-ready', 'NoExecute'],
  ['node.kubernetes.io/unreachable', 'NoExecute'],
  ['node.kubernetes.io/disk-pressure', 'NoSchedule'],
  ['node.kubernetes.io/memory-pressure', 'NoSchedule'],
  ['node.kubernetes.io/pid-pressure', 'NoSchedule'],
  ['node.kubernetes.io/unschedulable', 'NoSchedule'],
] as const

/** Those of the template and of every daemon: it stays on a node in trouble, and comes to one that is cordoned or short of something. */
export function daemonTolerations({ tolerations = [], hostNetwork }: PodSpec): readonly Toleration[] {
  const added = [
    ...taintsOfNodes,
    ...(hostNetwork ? ([['node.kubernetes.io/network-unavailable', 'NoSchedule']] as const) : []),
  ].map(([key, effect]): Toleration => ({ key, operator: 'Exists', effect }))
  const stated = tolerations.map((one) => (added.some((other) => isSame(one, other)) ? withoutSeconds(one) : one))
  return [...stated, ...added.filter((one) => !stated.some((other) => isSame(one, other)))]
}

function isSame(a: Toleration, b: Toleration): boolean {
  return a.key === b.key && a.effect === b.effect && a.operator === b.operator && (a.value ?? '') === (b.value ?? '')
}

/** A daemon is not evicted after a while either. */
function withoutSeconds({ tolerationSeconds: _, ...toleration }: Toleration): Toleration {
  return toleration
}

const generationLabel = 'pod-template-generation'

/** The template of the pods of this revision (CreatePodTemplate). `generation`: the number in the annotation of the set. */
export function daemonTemplate(
  { metadata, spec }: PodTemplateSpec,
  hash: string,
  generation: string | undefined,
): PodTemplateSpec {
  const labels = {
    ...metadata?.labels,
    ...(generation !== undefined && { [generationLabel]: generation }),
    [revisionLabel]: hash,
  }
  return { metadata: { ...metadata, labels }, spec: { ...spec, tolerations: [...daemonTolerations(spec)] } }
}

/** Whether the pod is of the present template. */
export function isUpdatedDaemon({ metadata }: Pod, hash: string, generation: string | undefined): boolean {
  const labels = metadata.labels ?? {}
  return labels[revisionLabel] === hash || (generation !== undefined && labels[generationLabel] === generation)
}

/** The pod, which the scheduler then places on this node or nowhere (ReplaceDaemonSetPodNodeNameNodeAffinity). */
export function pinnedTo(pod: Pod, node: string): Pod {
  const { affinity = {} } = pod.spec
  const nodeSelectorTerms = [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }]
  const required = { ...affinity.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution, nodeSelectorTerms }
  const nodeAffinity = { ...affinity.nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution: required }
  return { ...pod, spec: { ...pod.spec, affinity: { ...affinity, nodeAffinity } } }
}

/** The node that the pod is on, or is meant for; undefined: neither can be read from it (GetTargetNodeName). */
export function nodeOfDaemon({ spec }: Pod): string | undefined {
  if (spec.nodeName) return spec.nodeName
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  for (const { matchFields = [] } of terms) {
    const named = matchFields.find(({ key, operator }) => key === 'metadata.name' && operator === 'In')
    if (named !== undefined) return named.values?.length === 1 ? named.values[0] : undefined
  }
  return undefined
}
