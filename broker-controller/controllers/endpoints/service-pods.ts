/**
 * Which pods each Service selects, kept up to date by their changes. A change of a pod costs by the labels of the pod: of
 * all selectors only those are compared with it that have one of its labels. Services with the same selector share their pods.
 */
import type { Labels } from '../../../api/selectors.ts'
import { keyText } from '../../store/informer.ts'
import type { StoredObject, StoredPod } from '../../store/store.ts'
import { isOtherEndpoint, selectorOf } from './pod-endpoints.ts'

export interface ServicePods {
  /** A new Service, or one that may have another selector. */
  putService(service: StoredObject<'services'>): void
  removeService(service: StoredObject<'services'>): void
  /** The keys of the Services that may have other endpoints after this change of a pod. */
  putPod(present: StoredPod | undefined, previous: StoredPod | undefined): readonly string[]
  /** The pods that the Service selects, by its key; in the order in which they came. */
  podsOf(service: string): readonly StoredPod[]
}

type Selecting = {
  readonly selector: Labels
  /** Its pairs, in the order of their names; read once, as there may be very many. */
  readonly pairs: Pairs
  /** With its namespace. */
  readonly text: string
  readonly pods: Map<string, StoredPod>
  /** The keys of the Services that have this selector. */
  readonly services: Set<string>
}

type Pairs = readonly (readonly [string, string])[]

export function servicePods(): ServicePods {
  const byService = new Map<string, Selecting>()
  /** By namespace and selector. */
  const bySelector = new Map<string, Selecting>()
  /** By the first label of a selector. */
  const byLabel = new Map<string, Set<Selecting>>()
  const podsIn = new Map<string, Map<string, StoredPod>>()

  const drop = (namespace: string, key: string) => {
    const known = byService.get(key)
    byService.delete(key)
    known?.services.delete(key)
    if (known === undefined || known.services.size > 0) return
    bySelector.delete(known.text)
    const at = labelText(namespace, firstOf(known.pairs))
    const near = byLabel.get(at)
    near?.delete(known)
    if (near?.size === 0) byLabel.delete(at)
  }
  const keepPod = (namespace: string, key: string, pod: StoredPod | undefined) => {
    const pods = podsIn.get(namespace) ?? new Map<string, StoredPod>()
    if (pod === undefined) pods.delete(key)
    else pods.set(key, pod)
    if (pods.size === 0) podsIn.delete(namespace)
    else podsIn.set(namespace, pods)
  }
  const added = (namespace: string, selector: Labels, pairs: Pairs, text: string): Selecting => {
    const pods = new Map<string, StoredPod>()
    for (const [podKey, pod] of podsIn.get(namespace) ?? []) {
      if (selects(pairs, pod.metadata.labels)) pods.set(podKey, pod)
    }
    const selecting: Selecting = { selector, pairs, text, pods, services: new Set() }
    bySelector.set(text, selecting)
    const at = labelText(namespace, firstOf(pairs))
    byLabel.set(at, (byLabel.get(at) ?? new Set()).add(selecting))
    return selecting
  }

  return {
    putService(service) {
      const { namespace = '' } = service.metadata
      const key = keyText(service.metadata)
      const selector = selectorOf(service)
      const known = byService.get(key)
      if (known !== undefined && selector !== undefined && isSame(known.selector, selector)) return
      drop(namespace, key)
      if (selector === undefined) return
      const pairs = pairsOf(selector)
      const text = JSON.stringify([namespace, ...pairs])
      const selecting = bySelector.get(text) ?? added(namespace, selector, pairs, text)
      selecting.services.add(key)
      byService.set(key, selecting)
    },
    removeService: ({ metadata }) => drop(metadata.namespace ?? '', keyText(metadata)),
    putPod(present, previous) {
      const pod = present ?? previous
      if (pod === undefined) return []
      const { namespace = '' } = pod.metadata
      const podKey = keyText(pod.metadata)
      keepPod(namespace, podKey, present)
      const isOther = present === undefined || previous === undefined || isOtherEndpoint(previous, present)
      const labels = [
        ...Object.entries(previous?.metadata.labels ?? {}),
        ...Object.entries(present?.metadata.labels ?? {}),
      ]
      const near = new Set(labels.flatMap((label) => [...(byLabel.get(labelText(namespace, label)) ?? [])]))
      return [...near].flatMap(({ pairs, pods, services }) => {
        const wasSelected = pods.has(podKey)
        const isSelected = present !== undefined && selects(pairs, present.metadata.labels)
        if (isSelected) pods.set(podKey, present)
        else pods.delete(podKey)
        return wasSelected !== isSelected || (isSelected && isOther) ? [...services] : []
      })
    },
    podsOf: (service) => [...(byService.get(service)?.pods.values() ?? [])],
  }
}

function selects(pairs: Pairs, labels: Labels = {}): boolean {
  return pairs.every(([name, value]) => Object.hasOwn(labels, name) && labels[name] === value)
}

function isSame(one: Labels, other: Labels): boolean {
  return Object.keys(one).length === Object.keys(other).length && selects(Object.entries(one), other)
}

/** In the order of their names. */
function pairsOf(selector: Labels): Pairs {
  return Object.keys(selector)
    .sort()
    .map((name) => [name, selector[name] ?? ''])
}

/** The first pair of a selector, which is not empty. */
function firstOf([first = ['', '']]: Pairs): readonly [string, string] {
  return first
}

function labelText(namespace: string, [name, value]: readonly [string, string]): string {
  return `${namespace} ${name}=${value}`
}
