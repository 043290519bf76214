/** The objects of all kinds, for a controller: also of those that are defined and removed while it runs. */
import { isCustomName, type Resource, type ResourceName, type ResourceRegistry } from '../../../api/resources.ts'
import { aborted, withOwnSignal } from '../../../daemon/aborted.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { Informer } from '../../store/informer.ts'

/** `onChange`: calls its listener when there are other kinds, and returns how to stop that; undefined: they stay as they are. */
export type ChangingResources = ResourceRegistry & { readonly onChange?: (listener: () => void) => () => void }

export type WatchedKind = { readonly resource: Resource; readonly objects: Informer<ResourceName> }

export interface WatchedKinds {
  get(id: string): WatchedKind | undefined
  /** Resolves when the objects are there of all kinds that there were at the start. */
  readonly listed: Promise<unknown>
  /** They run the informers. */
  readonly loops: readonly Loop[]
}

type Running = WatchedKind & { readonly ending: AbortController }

/** `watch`: makes the informer of a kind. */
export function watchedKinds(
  resources: ChangingResources,
  isWanted: (resource: Resource) => boolean,
  watch: (resource: Resource) => Informer<ResourceName>,
): WatchedKinds {
  const watched = (resource: Resource): Running => ({
    resource,
    objects: watch(resource),
    ending: new AbortController(),
  })
  const kinds = new Map(resources.all.filter(isWanted).map((resource) => [resource.id as string, watched(resource)]))
  const builtIn = [...kinds.values()].filter(({ resource }) => !isCustomName(resource.id))
  const loops = builtIn.map(({ resource, objects }) => ({ name: resource.id, run: objects.run }))
  return {
    get: (id) => kinds.get(id),
    listed: Promise.all([...kinds.values()].map(({ objects }) => objects.listed)),
    loops: [...loops, { name: 'custom-kinds', run: (signal) => runCustomKinds(kinds, resources, watched, signal) }],
  }
}

async function runCustomKinds(
  kinds: Map<string, Running>,
  resources: ChangingResources,
  watched: (resource: Resource) => Running,
  signal: AbortSignal,
): Promise<void> {
  const running = new Set<Promise<void>>()
  const failing = new AbortController()
  let failure: unknown
  const start = ({ objects, ending }: Running) => {
    const one = withOwnSignal(signal, async (own) => {
      ending.signal.addEventListener('abort', () => own.abort(), { once: true })
      await objects.run(own.signal)
    }).catch((error: unknown) => {
      failure ??= error
      failing.abort()
    })
    running.add(one)
    void one.then(() => running.delete(one))
  }
  const follow = () => {
    const present = new Map(resources.all.map((resource) => [resource.id as string, resource]))
    for (const [id, { ending }] of kinds) {
      if (!isCustomName(id) || present.has(id)) continue
      ending.abort('The kind is no longer defined')
      kinds.delete(id)
    }
    for (const [id, resource] of present) {
      if (!isCustomName(id) || kinds.has(id)) continue
      const kind = watched(resource)
      kinds.set(id, kind)
      start(kind)
    }
  }
  for (const kind of kinds.values()) if (isCustomName(kind.resource.id)) start(kind)
  const stop = resources.onChange?.(follow)
  follow()
  try {
    await Promise.race([aborted(signal), aborted(failing.signal)])
  } finally {
    stop?.()
    await Promise.all(running)
  }
  if (failing.signal.aborted) throw failure
}
