/**
 * Loop: creates and deletes the mirror pods of static pods in the API, so that kubectl shows them
 * (pkg/kubelet/pod/mirror_client.go).
 */

import type { Desired } from '../../../api/desired.ts'
import type { OwnerReference } from '../../../api/meta.ts'
import { mirroredHash } from '../../../api/pod/static-pod.ts'
import { mirrorAnnotation, type Pod } from '../../../api/pod.ts'
import { type ApiAnswer, type ApiClient, ApiUnreachable, statusMessage } from '../../../daemon/api-client.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { ControlPlaneListener } from '../../node/connection/control-plane.ts'
import { isNewer, mirrorsIn, podPath, withKnown } from '../wanted/desired-pods.ts'

export type MirrorManagerNeeds = {
  readonly api: Pick<ApiClient, 'get' | 'post' | 'delete'>
  /** Containers or volumes of this static pod exist on the machine. */
  readonly isHere: (uid: string) => boolean
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export interface MirrorManager extends Loop, ControlPlaneListener {
  /** All static pods; undefined while unknown. */
  staticPods(pods: readonly Pod[] | undefined): void
}

/** `remove`: the mirror that is deleted first; `create`: the static pod that is mirrored then. */
export type MirrorPlan = 'none' | 'wait' | { readonly remove?: Pod; readonly create?: Pod }

/** `isHere`: containers or volumes of the mirrored pod exist. */
export function mirrorPlan(pod: Pod | undefined, mirror: Pod | undefined, isHere: boolean): MirrorPlan {
  if (pod === undefined) return mirror === undefined ? 'none' : isHere ? 'wait' : { remove: mirror }
  if (mirror === undefined) return { create: pod }
  const isRight = mirroredHash(mirror) === pod.metadata.uid && mirror.metadata.deletionTimestamp === undefined
  return isRight ? 'none' : { remove: mirror, create: pod }
}

/** The mirror pod. The Node owns it, so it is deleted with the Node. */
function mirrorOf({ apiVersion, kind, metadata, spec }: Pod, node: Pick<OwnerReference, 'name' | 'uid'>): Pod {
  const { name, namespace, labels, annotations, uid = '' } = metadata
  return {
    apiVersion,
    kind,
    metadata: {
      ...(name !== undefined && { name }),
      ...(namespace !== undefined && { namespace }),
      ...(labels && { labels }),
      annotations: { ...annotations, [mirrorAnnotation]: uid },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', ...node, controller: true }],
    },
    spec,
  }
}

/** A created mirror appears in the desired pods; if it does not, it is created again after this time. */
const lookAgainMs = 30_000
const waitForEndMs = 1_000

export function mirrorManager(needs: MirrorManagerNeeds, { nodeName }: { readonly nodeName: string }): MirrorManager {
  const { api, isHere, clock, random, log } = needs
  const queue = workQueue(clock, random)
  let desired: Desired | undefined
  let mirrors: ReadonlyMap<string, Pod> = new Map()
  let own: ReadonlyMap<string, Pod> | undefined
  const logged = new Map<string, string>()

  const planFor = (key: string): MirrorPlan => {
    const mirror = mirrors.get(key)
    // Without the desired pods or the static pods it is unknown which mirrors are missing.
    if (desired === undefined || own === undefined) return 'none'
    return mirrorPlan(own.get(key), mirror, mirror !== undefined && isHere(mirroredHash(mirror) ?? ''))
  }

  const lookAtAll = () => {
    for (const key of new Set([...(own?.keys() ?? []), ...mirrors.keys()])) queue.add(key)
  }

  const create = async (pod: Pod, signal: AbortSignal) => {
    const node = await api.get(`/api/v1/nodes/${nodeName}`, signal)
    const { uid, deletionTimestamp } = metadataIn(node)
    if (uid === undefined || deletionTimestamp !== undefined) throw new MirrorRefused('There is no Node yet', node)
    const { namespace = '', name = '' } = pod.metadata
    const made = await api.post(`/api/v1/namespaces/${namespace}/pods`, mirrorOf(pod, { name: nodeName, uid }), signal)
    if (made.status === 201) return log.info('Mirror pod created', { pod: podPath(pod) })
    if (made.status !== 409) throw new MirrorRefused('Mirror pod rejected', made)
    const there = await api.get(apiPath(namespace, name), signal)
    const annotations = metadataIn(there).annotations ?? {}
    if (annotations[mirrorAnnotation] === pod.metadata.uid) return
    throw new MirrorRefused('Another pod of this name is in the API: rename one of the two', made)
  }

  const remove = async ({ metadata }: Pod, signal: AbortSignal) => {
    const { namespace = '', name = '', uid } = metadata
    const options = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0, preconditions: { uid } }
    const gone = await api.delete(apiPath(namespace, name), signal, options)
    // A mirror pod of that name was replaced, deleted or belongs to another owner: the next `desired` message shows it.
    if ([200, 202, 403, 404, 409].includes(gone.status)) return
    throw new MirrorRefused('Mirror pod not removed', gone)
  }

  const reconcile = async (key: string, signal: AbortSignal): Promise<number | undefined> => {
    const plan = planFor(key)
    if (plan === 'none') return undefined
    if (plan === 'wait') return waitForEndMs
    if (plan.remove !== undefined) await remove(plan.remove, signal)
    if (plan.create !== undefined) await create(plan.create, signal)
    logged.delete(key)
    return lookAgainMs
  }

  /** Logs each reason once: the operation is retried until it succeeds. */
  const logFailure = (key: string, error: unknown, retryInMs: number) => {
    const reason = error instanceof Error ? error.message : String(error)
    const isNew = logged.get(key) !== reason && !(error instanceof ApiUnreachable)
    logged.set(key, reason)
    if (isNew) log.warn('Static pod has no matching mirror pod in the API', { pod: key, retryInMs, error })
    else log.debug('Static pod has no matching mirror pod in the API yet', { pod: key, retryInMs, error })
  }

  return {
    name: 'mirror-pods',
    desired(message) {
      if (!isNewer(desired, message)) return
      desired = withKnown(message, desired)
      mirrors = new Map(mirrorsIn(desired).map((pod) => [podPath(pod), pod]))
      lookAtAll()
    },
    staticPods(pods) {
      own = pods && new Map(pods.map((pod) => [podPath(pod), pod]))
      lookAtAll()
    },
    async run(signal) {
      for await (const key of queue.keys(signal)) {
        try {
          queue.done(key, await reconcile(key, signal))
        } catch (error) {
          const retryInMs = queue.failed(key)
          if (!signal.aborted) logFailure(key, error, retryInMs)
        }
      }
    },
  }
}

/** The API rejected the request. */
class MirrorRefused extends Error {
  override readonly name = 'MirrorRefused'

  constructor(what: string, { status, body }: ApiAnswer) {
    super(`${what}: ${status} ${statusMessage(body) ?? ''}`.trim())
  }
}

function apiPath(namespace: string, name: string): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`
}

function metadataIn({ status, body }: ApiAnswer): Partial<Pod['metadata']> {
  return status === 200 ? ((body as Partial<Pod>).metadata ?? {}) : {}
}
