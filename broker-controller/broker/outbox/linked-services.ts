/** The Services whose addresses the containers of a node get as variables: those in the namespaces of its pods. */
import type { ServiceLink } from '../../../api/network/service-links.ts'
import { serviceLinkOf } from '../../../api/network/service-links.ts'
import type { Pod } from '../../../api/pod.ts'
import { isAssigned } from '../../store/checkpoints/checkpoint-data.ts'
import type { StoredObject } from '../../store/store.ts'
import { nodesUsing } from './nodes-using.ts'

/** undefined: the containers of this pod get no variables of Services. A pod that a node claimed gives it access to none. */
export function linkedNamespace({ metadata, spec }: Pod): string | undefined {
  if (spec.enableServiceLinks === false || !isAssigned({ metadata })) return undefined
  return metadata.namespace ?? 'default'
}

/** Those of the namespaces of these pods, in a stable order. */
export function linkedServices(
  pods: readonly Pod[],
  servicesIn: (namespace: string) => readonly ServiceLink[],
): readonly ServiceLink[] {
  const namespaces = new Set(pods.flatMap((pod) => linkedNamespace(pod) ?? []))
  return [...namespaces].sort().flatMap((namespace) => [...servicesIn(namespace)].sort(byName))
}

function byName(a: ServiceLink, b: ServiceLink): number {
  return a.name < b.name ? -1 : 1
}

type Changed<Name extends 'pods' | 'services'> = StoredObject<Name> | undefined

export interface LinkedServicesIndex {
  updatePod(present: Changed<'pods'>, previous: Changed<'pods'>): void
  /** Returns the nodes whose message changes. Most changes of a Service are of its selector, labels or status: nodes receive neither. */
  updateService(present: Changed<'services'>, previous: Changed<'services'>): readonly string[]
  servicesIn(namespace: string): readonly ServiceLink[]
}

/** So that neither a pod nor a Service is compared with all of the other kind. */
export function linkedServicesIndex(): LinkedServicesIndex {
  const services = new Map<string, Map<string, ServiceLink>>()
  /** Nodes with pods that link Services, by namespace. */
  const users = nodesUsing()

  const count = (pod: Changed<'pods'>, by: 1 | -1) => {
    const namespace = pod && linkedNamespace(pod)
    const node = pod?.spec.nodeName
    if (namespace !== undefined && node) users.add(namespace, node, by)
  }

  return {
    updatePod(present, previous) {
      count(previous, -1)
      count(present, 1)
    },
    updateService(present, previous) {
      const { namespace = '', name = '' } = (present ?? previous)?.metadata ?? {}
      const before = services.get(namespace)?.get(name)
      const link = present && serviceLinkOf(present)
      if (JSON.stringify(link) === JSON.stringify(before)) return []
      const links = services.get(namespace) ?? new Map<string, ServiceLink>()
      if (link === undefined) links.delete(name)
      else links.set(name, link)
      if (links.size > 0) services.set(namespace, links)
      else services.delete(namespace)
      return users.nodesOf(namespace)
    },
    servicesIn: (namespace) => [...(services.get(namespace)?.values() ?? [])],
  }
}
