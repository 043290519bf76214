/** metrics.k8s.io: the nodes concerned are polled, and their usage is shown. */
import { notFound } from '../../../api/api-error.ts'
import type { Node } from '../../../api/node.ts'
import type { Pod } from '../../../api/pod.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import { mayReportUsage, reportedPodUsage, type UsedAmounts, usedAmounts } from '../../usage/pod-usage.ts'
import type { ReceivedUsage, UsageBoard } from '../../usage/usage-board.ts'
import { selectionOf } from '../handlers/list-options.ts'
import { nodeStrategy } from '../kinds/node.ts'
import { podStrategy } from '../kinds/pod.ts'
import { type ApiResponse, objectAnswer } from '../wire/answers.ts'
import { answerForm } from '../wire/content-negotiation.ts'
import { type UsageRoute, usageGroup, usageVersion } from './usage-routes.ts'

export type UsageNeeds = { readonly store: Store; readonly usage: UsageBoard }

export type UsageRequest = {
  readonly route: UsageRoute
  readonly query: URLSearchParams
  readonly accept: string | undefined
  readonly signal: AbortSignal
}

type Metrics = {
  readonly kind: 'NodeMetrics' | 'PodMetrics'
  readonly apiVersion: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly timestamp: string
  readonly window: string
  readonly usage?: Amounts
  readonly containers?: readonly { readonly name: string; readonly usage: Amounts }[]
}
type Amounts = { readonly cpu: string; readonly memory: string }

const apiVersion = `${usageGroup}/${usageVersion}`

/** Throws the ApiError of the answer. */
export async function usageAnswer(request: UsageRequest, needs: UsageNeeds): Promise<ApiResponse> {
  const { route } = request
  const form = answerForm(request.accept)
  const items = await (route.resource === 'nodes' ? nodeMetrics : podMetrics)(request, needs)
  const [only] = items
  const kind = route.resource === 'nodes' ? 'NodeMetrics' : 'PodMetrics'
  if (form === 'table') return objectAnswer(tableOf(items))
  if (route.verb === 'list') return objectAnswer({ kind: `${kind}List`, apiVersion, metadata: {}, items })
  if (only === undefined) {
    const place = route.namespace === '' ? route.name : `${route.namespace}/${route.name}`
    throw notFound({ name: kind.toLowerCase(), group: usageGroup }, place)
  }
  return objectAnswer(only)
}

async function nodeMetrics(request: UsageRequest, { store, usage }: UsageNeeds): Promise<readonly Metrics[]> {
  const nodes = await selectedNodes(request, store)
  await usage.look(nodes.filter(mayReportUsage).map(nameOf), request.signal)
  return nodes.flatMap((node) => {
    const sample = usage.newest(nameOf(node))
    const amounts = sample === undefined ? undefined : usedAmounts(sample.node)
    if (sample === undefined || amounts === undefined) return []
    const shown = { metadata: metadataOf(node, sample), ...timesOf(sample), usage: amountsOf(amounts) }
    return { kind: 'NodeMetrics', apiVersion, ...shown }
  })
}

async function podMetrics(request: UsageRequest, { store, usage }: UsageNeeds): Promise<readonly Metrics[]> {
  const pods = await selectedPods(request, store)
  const wanted = new Set(pods.flatMap(({ spec }) => spec.nodeName ?? []))
  const nodes = await Promise.all([...wanted].map((name) => store.get('nodes', { namespace: '', name })))
  const present = nodes.flatMap((node) => (node !== undefined && mayReportUsage(node) ? nameOf(node) : []))
  await usage.look(present, request.signal)
  return pods.flatMap((pod) => {
    const used = reportedPodUsage(usage, pod)
    if (used === undefined) return []
    const { sample } = used
    const containers = [...used.containers].map(([name, one]) => ({ name, usage: amountsOf(one) }))
    return { kind: 'PodMetrics', apiVersion, metadata: metadataOf(pod, sample), ...timesOf(sample), containers }
  })
}

async function selectedNodes({ route: { name }, query }: UsageRequest, store: Store) {
  if (name !== '') return present(await store.get('nodes', { namespace: '', name }))
  return (await store.list('nodes')).items.filter(selectionOf(nodeStrategy, query).matches)
}

async function selectedPods({ route: { namespace, name }, query }: UsageRequest, store: Store) {
  if (name !== '') return present(await store.get('pods', { namespace, name }))
  return (await store.list('pods', namespace || undefined)).items.filter(selectionOf(podStrategy, query).matches)
}

function present<T>(one: T | undefined): readonly T[] {
  return one === undefined ? [] : [one]
}

function nameOf({ metadata }: StoredObject<'nodes'>): string {
  return metadata.name
}

function metadataOf({ metadata }: Node | Pod, { receivedWallMs }: ReceivedUsage) {
  const { name = '', namespace, labels } = metadata
  return {
    name,
    ...(namespace && { namespace }),
    creationTimestamp: rfc3339(receivedWallMs),
    ...(labels && { labels }),
  }
}

function timesOf({ receivedWallMs, windowSeconds }: ReceivedUsage) {
  return { timestamp: rfc3339(receivedWallMs), window: `${windowSeconds.toFixed(3)}s` }
}

function amountsOf({ cpu, memoryKi }: UsedAmounts): Amounts {
  return { cpu: `${cpu}n`, memory: `${memoryKi}Ki` }
}

function tableOf(items: readonly Metrics[]) {
  const column = (name: string, format = '') => ({ name, type: 'string', format, description: '', priority: 0 })
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: {},
    columnDefinitions: [column('Name', 'name'), column('cpu'), column('memory'), column('window')],
    rows: items.map((item) => ({
      cells: [item.metadata.name, ...totals(item), item.window],
      object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: item.metadata },
    })),
  }
}

function totals({ usage, containers = [] }: Metrics): readonly string[] {
  const all = usage === undefined ? containers.map((container) => container.usage) : [usage]
  const sum = (unit: 'cpu' | 'memory') => all.reduce((total, amounts) => total + Number.parseInt(amounts[unit], 10), 0)
  return [`${sum('cpu')}n`, `${sum('memory')}Ki`]
}
