/** The downward API: the pod's fields and resources that variables and files can carry. */
import type { Container, Pod } from '../../../api/pod.ts'
import { milliValue, quantityToNumber } from '../../../api/quantity.ts'
import { quotedByGo } from './go-quote.ts'
import type { Found } from './named-data.ts'

export type DownwardSources = {
  readonly hostIP: string | undefined
  /** Address of the other IP family. */
  readonly otherHostIP?: string | undefined
  readonly podIP: string | undefined
  /** Address of the other IP family. */
  readonly otherPodIP?: string | undefined
  /** Allocatable resources of the node: what a container without a limit may use at most. */
  readonly allocatable: { readonly [resource: string]: string | number }
}

/** For a variable: one word of the pod. */
export function fieldValue({ metadata, spec }: Pod, path: string, sources: DownwardSources): Found<string> {
  const { hostIP, otherHostIP, podIP, otherPodIP } = sources
  const keyed = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path)
  if (keyed !== null) {
    return { value: metadata[keyed[1] === 'labels' ? 'labels' : 'annotations']?.[keyed[2] ?? ''] ?? '' }
  }
  const ownIP = spec.hostNetwork ? hostIP : podIP
  const hostIPs = both(hostIP, otherHostIP)
  const fields: { readonly [path: string]: string | undefined } = {
    'metadata.name': metadata.name,
    'metadata.namespace': metadata.namespace ?? 'default',
    'metadata.uid': metadata.uid,
    'spec.nodeName': spec.nodeName,
    'spec.serviceAccountName': spec.serviceAccountName,
    'status.hostIP': hostIP,
    'status.hostIPs': hostIPs,
    'status.podIP': ownIP,
    'status.podIPs': spec.hostNetwork ? hostIPs : both(podIP, otherPodIP),
  }
  return path in fields ? { value: fields[path] ?? '' } : { missing: `unsupported fieldPath: ${path}` }
}

function both(primary: string | undefined, other: string | undefined): string | undefined {
  return primary === undefined || other === undefined ? primary : `${primary},${other}`
}

/** Whether it refers to values of the node: its address, or its allocatable resources. */
export function asksOfNode({ spec }: Pod, { env = [] }: Container): boolean {
  const ofNode = spec.hostNetwork ? /^status\.(host|pod)IPs?$/ : /^status\.hostIPs?$/
  const inFiles = (spec.volumes ?? []).flatMap(({ downwardAPI, projected }) =>
    [downwardAPI, ...(projected?.sources ?? []).map((source) => source.downwardAPI)].flatMap((one) => one?.items ?? []),
  )
  return [...env.flatMap(({ valueFrom }) => valueFrom ?? []), ...inFiles].some(
    ({ fieldRef, resourceFieldRef }) => resourceFieldRef !== undefined || ofNode.test(fieldRef?.fieldPath ?? ''),
  )
}

/** For a file: also all labels, or all annotations, one `key="value"` a line. */
export function fieldText(pod: Pod, path: string, sources: DownwardSources): Found<string> {
  if (path === 'metadata.labels') return { value: linesOf(pod.metadata.labels) }
  if (path === 'metadata.annotations') return { value: linesOf(pod.metadata.annotations) }
  return fieldValue(pod, path, sources)
}

export type ResourceFieldRef = {
  readonly containerName?: string
  readonly resource: string
  readonly divisor?: string | number
}

/** Rounded up, in units of the divisor. `own`: the container that asks, when it names none. */
export function resourceValue(
  pod: Pod,
  { containerName, resource, divisor = '1' }: ResourceFieldRef,
  own: string | undefined,
  { allocatable }: DownwardSources,
): Found<string> {
  const name = containerName || own || ''
  const container = containersOf(pod).find((one) => one.name === name)
  if (container === undefined) return { missing: `container ${name} not found` }
  const [, kind, what = ''] = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/.exec(resource) ?? []
  if (kind === undefined) return { missing: `unsupported container resource : ${resource}` }
  const { limits = {}, requests = {} } = container.resources ?? {}
  const units = what === 'cpu' ? milliValue : quantityToNumber
  const given = units((kind === 'limits' ? limits[what] : (requests[what] ?? limits[what])) ?? '0')
  const amount = kind === 'limits' && given === 0 ? units(mostOfNode(what, allocatable)) : given
  const unit = units(divisor) || units('1')
  return { value: String(Math.ceil(amount / unit)) }
}

/**
 * For a container whose limit is missing or 0. The node's huge pages are not for every container, so without a limit it
 * has none (MergeContainerResourceLimits, pkg/api/v1/resource/helpers.go).
 */
function mostOfNode(resource: string, allocatable: DownwardSources['allocatable']): string | number {
  return resource.startsWith('hugepages-') ? '0' : (allocatable[resource] ?? '0')
}

function containersOf({ spec }: Pod): readonly Container[] {
  return [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])]
}

function linesOf(words: { readonly [key: string]: string } = {}): string {
  return Object.entries(words)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}="${quotedByGo(value)}"`)
    .join('\n')
}
