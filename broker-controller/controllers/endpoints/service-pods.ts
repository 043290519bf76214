/**
 * Which pods each Service selects, kept up to date by their changes. A change of a pod costs by the labels of the pod: of
 * all Services only those are compared with it whose selector has one of its labels.
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

type Selecting = { readonly selector: Labels; readonly pods: Map<string, StoredPod> }

export function servicePods(): ServicePods {
  const services = new Map<string, Selecting>()
  /** By a label that their selectors have: the keys of Services. */
  const byLabel = new Map<string, Set<string>>()
  const podsIn = new Map<string, Map<string, StoredPod>>()

  const drop = (namespace: string, key: string) => {
    const known = services.get(key)
    if (known === undefined) return
    services.delete(key)
    const at = labelText(namespace, firstOf(known.selector))
    const keys = byLabel.get(at)
    keys?.delete(key)
    if (keys?.size === 0) byLabel.delete(at)
  }
  const keepPod = (namespace: string, key: string, pod: StoredPod | undefined) => {
    const pods = podsIn.get(namespace) ?? new Map<string, StoredPod>()
    if (pod === undefined) pods.delete(key)
    else pods.set(key, pod)
    if (pods.size === 0) podsIn.delete(namespace)
    else podsIn.set(namespace, pods)
  }

  return {
    putService(service) {
      const { namespace = '' } = service.metadata
      const key = keyText(service.metadata)
      const selector = selectorOf(service)
      const known = services.get(key)
      if (known !== undefined && selector !== undefined && isSame(known.selector, selector)) return
      drop(namespace, key)
      if (selector === undefined) return
      const pods = new Map<string, StoredPod>()
      for (const [podKey, pod] of podsIn.get(namespace) ?? []) {
        if (selects(selector, pod.metadata.labels)) pods.set(podKey, pod)
      }
      services.set(key, { selector, pods })
      const at = labelText(namespace, firstOf(selector))
      byLabel.set(at, (byLabel.get(at) ?? new Set()).add(key))
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
      return [...near].filter((key) => {
        const { selector, pods } = services.get(key) ?? {}
        if (selector === undefined || pods === undefined) return false
        const wasSelected = pods.has(podKey)
        const isSelected = present !== undefined && selects(selector, present.metadata.labels)
        if (isSelected) pods.set(podKey, present)
        else pods.delete(podKey)
        return wasSelected !== isSelected || (isSelected && isOther)
      })
    },
    podsOf: (service) => [...(services.get(service)?.pods.values() ?? [])],
  }
}

function selects(selector: Labels, labels: Labels = {}): boolean {
  return Object.entries(selector).every(([name, value]) => Object.hasOwn(labels, name) && labels[name] === value)
}

function isSame(one: Labels, other: Labels): boolean {
  return Object.keys(one).length === Object.keys(other).length && selects(one, other)
}

/** Of a selector, which has at least one. */
function firstOf(selector: Labels): readonly [string, string] {
  const [first = ['', '']] = Object.entries(selector).sort()
  return [first[0] ?? '', first[1] ?? '']
}

function labelText(namespace: string, [name, value]: readonly [string, string]): string {
  return `${namespace} ${name}=${value}`
}
