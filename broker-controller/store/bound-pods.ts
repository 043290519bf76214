/** The pods of the store by the node that they are bound to: a request for one node must not cost all pods of the fleet. */
import type { AnyStoredObject } from './changes.ts'

export interface BoundPods {
  /** What was `previous` is this now; undefined: there was, or is, none. Objects of other kinds are left out. */
  change(present: AnyStoredObject | undefined, previous: AnyStoredObject | undefined): void
  /** In no order. */
  of(nodeName: string): readonly AnyStoredObject[]
}

export function boundPods(): BoundPods {
  const byNode = new Map<string, Map<string, AnyStoredObject>>()
  return {
    change(present, previous) {
      const [from, to] = [nodeOf(previous), nodeOf(present)]
      if (previous !== undefined && from !== undefined && from !== to) {
        const pods = byNode.get(from)
        pods?.delete(nameOf(previous))
        if (pods?.size === 0) byNode.delete(from)
      }
      if (present === undefined || to === undefined) return
      const pods = byNode.get(to) ?? new Map<string, AnyStoredObject>()
      byNode.set(to, pods.set(nameOf(present), present))
    },
    of: (nodeName) => [...(byNode.get(nodeName)?.values() ?? [])],
  }
}

function nodeOf(object: AnyStoredObject | undefined): string | undefined {
  if (object?.kind !== 'Pod' || typeof object.spec !== 'object' || object.spec === null) return undefined
  const { spec } = object
  return 'nodeName' in spec && typeof spec.nodeName === 'string' && spec.nodeName !== '' ? spec.nodeName : undefined
}

function nameOf({ metadata }: AnyStoredObject): string {
  return `${metadata.namespace}/${metadata.name}`
}
