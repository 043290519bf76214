/** The resources that a pod needs on a node, computed once for each pod. */

import type { Node } from '../../api/node.ts'
import type { Container, Pod, PodSpec } from '../../api/pod.ts'
import { milliValue, quantityToNumber } from '../../api/quantity.ts'

/** By resource name; cpu in thousandths, everything else in whole units. */
export type PodAmounts = ReadonlyMap<string, number>

export type HostPort = { readonly protocol: string; readonly ip: string; readonly port: number }

export type PodNeeds = {
  readonly requests: PodAmounts
  /** With something assumed for containers that ask for nothing: for scoring only. */
  readonly scored: PodAmounts
  readonly ports: readonly HostPort[]
}

/** As Kubernetes assumes: 100m and 200 MiB. */
const assumed: PodAmounts = new Map([
  ['cpu', 100],
  ['memory', 200 * 1024 * 1024],
])
const nothing: PodAmounts = new Map()

const known = new WeakMap<PodSpec, PodNeeds>()

export function podNeeds({ spec }: Pod): PodNeeds {
  const before = known.get(spec)
  if (before !== undefined) return before
  const requests = sharedAmounts(total(spec, nothing))
  const scored = sharedAmounts(total(spec, assumed))
  const ports = hostPorts(spec)
  const needs = ports.length === 0 ? withoutPorts(requests, scored) : { requests, scored, ports }
  known.set(spec, needs)
  return needs
}

/** Needs of pods without host ports, by their amounts: most pods of a fleet share a few of them. */
const portless = new WeakMap<PodAmounts, WeakMap<PodAmounts, PodNeeds>>()

function withoutPorts(requests: PodAmounts, scored: PodAmounts): PodNeeds {
  const ofRequests = portless.get(requests) ?? new WeakMap<PodAmounts, PodNeeds>()
  portless.set(requests, ofRequests)
  const needs = ofRequests.get(scored) ?? { requests, scored, ports: [] }
  ofRequests.set(scored, needs)
  return needs
}

/** Nodes of one model have the same amounts, which are held once. */
export function nodeAmounts(node: Node): PodAmounts {
  return sharedAmounts(amountsOf(node.status?.allocatable))
}

function amountsOf(quantities: { readonly [resource: string]: string | number } = {}): PodAmounts {
  return new Map(
    Object.entries(quantities).map(([name, quantity]) => [
      name,
      name === 'cpu' ? milliValue(quantity) : quantityToNumber(quantity),
    ]),
  )
}

/** Most pods of a fleet ask for one of a few amounts: those are held once. */
const amountsByText = new Map<string, PodAmounts>()
const mostShared = 1000

function sharedAmounts(amounts: PodAmounts): PodAmounts {
  // Nodes name resources as they like: `a=1,b` must not be taken for two of them.
  const text = JSON.stringify([...amounts])
  const before = amountsByText.get(text)
  if (before !== undefined) return before
  if (amountsByText.size >= mostShared) amountsByText.clear()
  amountsByText.set(text, amounts)
  return amounts
}

/** Kubernetes' rule: the sum of the containers and sidecars, or the most that an init step needs at its time. */
function total(spec: PodSpec, least: PodAmounts): PodAmounts {
  const sidecars = new Map<string, number>()
  /** At the most, up to each step. */
  const most = new Map<string, number>()
  for (const container of spec.initContainers ?? []) {
    for (const [name, amount] of requestsOf(container, least)) {
      const present = (sidecars.get(name) ?? 0) + amount
      if (isSidecar(container)) sidecars.set(name, present)
      raise(most, name, present)
    }
  }
  const running = new Map(sidecars)
  for (const container of spec.containers) add(running, requestsOf(container, least))
  for (const [name, amount] of running) raise(most, name, amount)
  add(most, amountsOf(spec.overhead))
  return most
}

/** A limit without a request is a request. */
function requestsOf({ resources }: Container, least: PodAmounts): PodAmounts {
  return new Map([...least, ...amountsOf({ ...resources?.limits, ...resources?.requests })])
}

function add(sum: Map<string, number>, amounts: PodAmounts): void {
  for (const [name, amount] of amounts) sum.set(name, (sum.get(name) ?? 0) + amount)
}

function raise(most: Map<string, number>, name: string, amount: number): void {
  most.set(name, Math.max(most.get(name) ?? 0, amount))
}

/** Those of containers and sidecars, which its node publishes (GetHostPorts in pkg/scheduler/util/utils.go). */
function hostPorts(spec: PodSpec): readonly HostPort[] {
  const sidecars = (spec.initContainers ?? []).filter(isSidecar)
  return [...sidecars, ...spec.containers]
    .flatMap(({ ports = [] }) => ports)
    .map(({ protocol, hostIP, hostPort, containerPort }) => ({
      protocol: protocol ?? 'TCP',
      ip: hostIP ?? '',
      port: hostPort ?? (spec.hostNetwork === true ? containerPort : 0),
    }))
    .filter(({ port }) => port > 0)
}

function isSidecar({ restartPolicy }: Container): boolean {
  return restartPolicy === 'Always'
}
