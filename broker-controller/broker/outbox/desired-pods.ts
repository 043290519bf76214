/** Pods as they are published to their node: what it needs to run them, and nothing that changes because it runs them. */
import { isDeepStrictEqual } from 'node:util'
import type { ObjectMeta, Stored } from '../../../api/meta.ts'
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import type { Pod } from '../../../api/pod.ts'

/**
 * The pod for its node. When only its version differs from `earlier`, the result is `earlier` itself, so that a status the
 * node reported is not published back to it.
 */
export function projectPod(pod: Pod & Stored<Pod>, earlier?: Pod): Pod {
  const { apiVersion, kind, metadata, spec, status } = pod
  const end = isFinished(pod) && status !== undefined ? { status: endOf(status) } : gatesOf(pod)
  const projected: Pod = { apiVersion, kind, metadata: metadataOf(metadata), spec, ...end }
  return earlier !== undefined && isSame(projected, earlier) ? earlier : projected
}

/** A pod as it is published to its node, and the stored pod from which it was made. */
export type DesiredPod = { readonly source: Pod & Stored<Pod>; readonly pod: Pod }

/** All pods of a node in a stable order, by uid; `earlier`: as they were published last. Only pods that changed are compared. */
export function desiredPods(
  pods: readonly (Pod & Stored<Pod>)[],
  earlier: ReadonlyMap<string, DesiredPod>,
): ReadonlyMap<string, DesiredPod> {
  const sorted = pods.map((pod) => ({ pod, key: `${pod.metadata.namespace}/${pod.metadata.name}` }))
  sorted.sort((a, b) => (a.key < b.key ? -1 : 1))
  return new Map(
    sorted.map(({ pod: source }) => {
      const { uid } = source.metadata
      const before = earlier.get(uid)
      return [uid, before?.source === source ? before : { source, pod: projectPod(source, before?.pod) }]
    }),
  )
}

/** Are these the very pods that were published last? */
export function hasSamePods(
  pods: ReadonlyMap<string, DesiredPod>,
  earlier: ReadonlyMap<string, DesiredPod> | undefined,
): boolean {
  return earlier?.size === pods.size && [...pods].every(([uid, { pod }]) => earlier.get(uid)?.pod === pod)
}

function metadataOf(metadata: Stored['metadata']): ObjectMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata
  const { labels, annotations, deletionTimestamp, deletionGracePeriodSeconds, ownerReferences } = metadata
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    uid,
    resourceVersion,
    creationTimestamp,
    ...(labels !== undefined && { labels }),
    ...(annotations !== undefined && { annotations }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(deletionGracePeriodSeconds !== undefined && { deletionGracePeriodSeconds }),
    ...(ownerReferences !== undefined && { ownerReferences }),
  }
}

function endOf({ phase, reason, message }: NonNullable<Pod['status']>): Pod['status'] {
  return { phase, ...(reason !== undefined && { reason }), ...(message !== undefined && { message }) }
}

/** Other controllers write the conditions of readiness gates into the status; the node computes Ready from them. */
function gatesOf({ spec: { readinessGates = [] }, status }: Pod): Pick<Pod, 'status'> {
  if (readinessGates.length === 0) return {}
  const gates = new Set(readinessGates.map(({ conditionType }) => conditionType))
  const conditions = (status?.conditions ?? [])
    .filter(({ type }) => gates.has(type))
    .map((condition) => ({ type: condition.type, status: condition.status }))
  return { status: { conditions } }
}

function isSame(projected: Pod, earlier: Pod): boolean {
  const { resourceVersion: _, ...metadata } = projected.metadata
  const { resourceVersion: __, ...earlierMetadata } = earlier.metadata
  return (
    isDeepStrictEqual(metadata, earlierMetadata) &&
    isDeepStrictEqual(projected.spec, earlier.spec) &&
    isDeepStrictEqual(projected.status, earlier.status)
  )
}
