/** A person with kubectl, in a forecast: applies manifests, and drains machines. */
import { administrator } from '../../api/identity.ts'
import type { AnyObject } from '../../api/meta.ts'
import { mirrorAnnotation, type Pod } from '../../api/pod.ts'
import { apiVersionOf, builtInResources, type Resource } from '../../api/resources.ts'
import { isObject } from '../../api/text/json.ts'
import type { ApiAnswer } from '../../daemon/api-client.ts'
import { type ApiServers, simulatedApi } from '../programs/api-transport.ts'
import type { ProgramPlace } from '../world/wire.ts'
import type { PlacedObject } from './manifests.ts'
import { isOfOtherPrograms } from './other-programs.ts'

export interface Person {
  /** Creates the objects, and their namespaces. */
  apply(objects: readonly PlacedObject[]): Promise<AppliedManifests>
  drain(machine: string, signal: AbortSignal): Promise<void>
}

export type AppliedManifests = {
  /** Kinds that were left out. */
  readonly leftOut: readonly string[]
  /** Why the API does not accept an object. */
  readonly refused: readonly string[]
}

export type ForecastPersonNeeds = {
  readonly place: ProgramPlace
  readonly api: ApiServers
  readonly note: (text: string) => void
}

const againMs = 2_000
const drainEveryMs = 5_000
/** A ServiceAccount is made some time after its namespace. */
const mostTries = 15
const inOrder: readonly string[] = [
  'Namespace',
  'PriorityClass',
  'StorageClass',
  'ServiceAccount',
  'ConfigMap',
  'Secret',
]
const workloads: readonly string[] = ['Pod', 'ReplicaSet', 'Deployment', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob']

export function forecastPerson({ place, api: servers, note }: ForecastPersonNeeds): Person {
  const api = simulatedApi(place, servers, administrator)
  const { clock } = place.life
  /** Repeats it until there is an answer that is not the server's failure. */
  const answered = async (ask: () => Promise<ApiAnswer>, isAsked: () => boolean = () => true) => {
    while (isAsked()) {
      const answer = await ask().catch(() => undefined)
      if (answer !== undefined && answer.status < 500 && answer.status !== 429) return answer
      await clock.sleep(againMs)
    }
    return undefined
  }
  const create = async (row: Resource, object: AnyObject): Promise<string | undefined> => {
    for (let tries = 1; ; tries++) {
      const answer = await answered(() => api.post(listPath(row, object.metadata.namespace), object))
      if (answer === undefined || answer.status < 300 || answer.status === 409) return undefined
      if (answer.status !== 403 || tries === mostTries) return messageIn(answer.body)
      await clock.sleep(againMs)
    }
  }

  return {
    async apply(objects) {
      const leftOut = new Set<string>()
      const refused: string[] = []
      for (const { place: from, object } of withNamespaces(objects)) {
        const row = builtInResources.ofKind(object.apiVersion, object.kind)
        if (row === undefined || isOfOtherPrograms(row.id)) leftOut.add(`${object.kind} (${object.apiVersion})`)
        else {
          const problem = await create(row, object)
          if (problem !== undefined) refused.push(`${from}: ${problem}`)
        }
      }
      return { leftOut: [...leftOut], refused }
    },
    async drain(machine, signal) {
      const isAsked = () => !signal.aborted
      const mark = (isCordoned: boolean) =>
        answered(() => api.patch(`/api/v1/nodes/${machine}`, { spec: { unschedulable: isCordoned ? true : null } }))
      const waiting = new Set<string>()
      const evict = async (pod: Pod): Promise<void> => {
        const { name = '', namespace = '' } = pod.metadata
        const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } }
        const answer = await api
          .post(`/api/v1/namespaces/${namespace}/pods/${name}/eviction`, body)
          .catch(() => undefined)
        if (answer?.status !== 429 || waiting.has(`${namespace}/${name}`)) return
        waiting.add(`${namespace}/${name}`)
        note(`machine ${machine}: the drain waits for pod ${namespace}/${name} (${messageIn(answer.body)})`)
      }
      await mark(true)
      while (isAsked()) {
        const list = await answered(() => api.get(`/api/v1/pods?fieldSelector=spec.nodeName%3D${machine}`), isAsked)
        if (list === undefined) break
        const left = (list.body as { readonly items: readonly Pod[] }).items.filter(isDrained)
        if (left.length === 0) {
          note(`machine ${machine}: the drain is done`)
          break
        }
        for (const pod of left) if (isAsked() && pod.metadata.deletionTimestamp === undefined) await evict(pod)
        await clock.sleep(drainEveryMs, signal)
      }
      if (isAsked()) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      await mark(false)
    },
  }
}

/** With the namespaces that objects are in, in the order in which they can be created. */
function withNamespaces(objects: readonly PlacedObject[]): readonly PlacedObject[] {
  const all = objects.map(({ place, object }) => {
    const isNamespaced = builtInResources.ofKind(object.apiVersion, object.kind)?.namespaced ?? false
    const namespace = isNamespaced ? { namespace: object.metadata.namespace ?? 'default' } : {}
    return { place, object: { ...object, metadata: { ...object.metadata, ...namespace } } }
  })
  const wanted = new Set(all.flatMap(({ object }) => object.metadata.namespace ?? []))
  const namespaces = [...wanted].map((name) => ({
    place: `namespace ${name}`,
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
  }))
  // A namespace of a manifest comes first: it may have labels.
  return [...all, ...namespaces].sort((a, b) => rankOf(a.object) - rankOf(b.object))
}

function rankOf({ kind }: AnyObject): number {
  const early = inOrder.indexOf(kind)
  return early >= 0 ? early : inOrder.length + Math.max(0, 1 + workloads.indexOf(kind))
}

/** As `kubectl drain --ignore-daemonsets`. */
function isDrained({ metadata, status }: Pod): boolean {
  const isOfDaemons = metadata.ownerReferences?.some(({ kind, controller }) => controller && kind === 'DaemonSet')
  const isOver = status?.phase === 'Succeeded' || status?.phase === 'Failed'
  return !isOfDaemons && !isOver && metadata.annotations?.[mirrorAnnotation] === undefined
}

function listPath(row: Resource, namespace: string | undefined): string {
  const root = row.group === '' ? `/api/${row.version}` : `/apis/${apiVersionOf(row)}`
  return row.namespaced ? `${root}/namespaces/${namespace}/${row.name}` : `${root}/${row.name}`
}

function messageIn(body: unknown): string {
  return isObject(body) && typeof body['message'] === 'string' ? body['message'] : 'no reason was given'
}
