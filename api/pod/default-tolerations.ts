/**
 * The tolerations that admission adds to a pod for nodes that are not ready or not reachable, and which of a pod's
 * tolerations are those (Kubernetes: plugin/pkg/admission/defaulttolerationseconds).
 */
import type { ObjectMeta } from '../meta.ts'
import type { Taint } from '../node.ts'
import type { Pod, Toleration } from '../pod.ts'
import { tolerates } from './tolerations.ts'

/** The taints of the node lifecycle controller, in the order in which admission adds their tolerations. */
const lifecycleTaints = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'] as const

const defaultTolerationSeconds = 300

/**
 * On a pod: the taints whose tolerations admission added, separated by commas. Empty: the author stated each of them.
 * Absent on a pod with such tolerations: the pod was created before this was recorded.
 */
export const defaultTolerationsAnnotation = 'bramble.dev/default-tolerations'

/** How long a pod stays on a node that is not ready or not reachable, where its author does not state it. */
export function withDefaultTolerations(tolerations: readonly Toleration[]): readonly Toleration[] {
  return [...tolerations, ...missingFrom(tolerations).map(defaultToleration)]
}

/**
 * The metadata of a new pod with the record of what admission adds to `stated`, the tolerations of its author. A copy
 * of a pod keeps the record that came with it for tolerations that are still the default: an author who left them out
 * would get the same, so a false claim gains nothing.
 */
export function withTolerationRecord(metadata: ObjectMeta, stated: readonly Toleration[]): ObjectMeta {
  const { [defaultTolerationsAnnotation]: claim, ...annotations } = metadata.annotations ?? {}
  const defaults = lifecycleTaints.filter((key) => withDefaultTolerations(stated).some((it) => isDefault(it, key)))
  if (defaults.length === 0) return claim === undefined ? metadata : { ...metadata, annotations }
  const [missing, claimed] = [missingFrom(stated), keysOf(claim)]
  const added = defaults.filter((key) => missing.includes(key) || claimed.includes(key))
  return { ...metadata, annotations: { ...annotations, [defaultTolerationsAnnotation]: added.join(',') } }
}

/** The metadata of a pod that replaces another: the record is the server's and stays as it was. */
export function withTolerationRecordOf(old: ObjectMeta, now: ObjectMeta): ObjectMeta {
  const record = old.annotations?.[defaultTolerationsAnnotation]
  const { [defaultTolerationsAnnotation]: given, ...annotations } = now.annotations ?? {}
  if (record === given) return now
  return {
    ...now,
    annotations: { ...annotations, ...(record !== undefined && { [defaultTolerationsAnnotation]: record }) },
  }
}

/**
 * Whether the pod tolerates this taint of the node lifecycle controller only by the default that admission added. On a
 * pod from before the record, a toleration that equals the default counts as added.
 */
export function isToleratedByDefault(taint: Taint, { metadata, spec }: Pod): boolean {
  const key = lifecycleTaints.find((it) => it === taint.key)
  const first = spec.tolerations?.find((toleration) => tolerates(toleration, taint))
  if (key === undefined || first === undefined || !isDefault(first, key)) return false
  const record = metadata.annotations?.[defaultTolerationsAnnotation]
  return record === undefined || keysOf(record).includes(key)
}

/** It shows that the node is not ready or not reachable. */
export function isLifecycleTaint({ key }: Taint): boolean {
  return lifecycleTaints.some((it) => it === key)
}

function missingFrom(tolerations: readonly Toleration[]): readonly string[] {
  return lifecycleTaints.filter(
    (key) =>
      !tolerations.some(
        (toleration) =>
          (!toleration.key || toleration.key === key) && (!toleration.effect || toleration.effect === 'NoExecute'),
      ),
  )
}

function defaultToleration(key: string): Toleration {
  return { key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: defaultTolerationSeconds }
}

function isDefault({ key, operator, value, effect, tolerationSeconds }: Toleration, taintKey: string): boolean {
  return (
    key === taintKey &&
    operator === 'Exists' &&
    !value &&
    effect === 'NoExecute' &&
    tolerationSeconds === defaultTolerationSeconds
  )
}

function keysOf(record: string | undefined): readonly string[] {
  return (record ?? '').split(',')
}
