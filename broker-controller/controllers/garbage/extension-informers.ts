/**
 * Loop: the objects of extension servers, by list and watch (as the metadata informers of pkg/controller/garbagecollector/graph_builder.go). A
 * kind that its server no longer lists is dropped; one whose server does not answer stays as it was.
 */
import { isApiError } from '../../../api/api-error.ts'
import type { ExtensionKind, ExtensionObject } from '../../../api/registration/extension-object.ts'
import { aborted, withOwnSignal } from '../../../daemon/aborted.ts'
import { backoffMs, connectionFailures } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { eachInTurns } from '../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { keyText } from '../../store/informer.ts'
import type { ObjectKey } from '../../store/store.ts'
import type { ExtensionObjects } from './extension-objects.ts'
import { extensionResource, type OwnedItem, type OwnershipGraph } from './ownership-graph.ts'

export type ExtensionInformerNeeds = {
  readonly extensionObjects: ExtensionObjects
  readonly clock: Clock
  readonly log: Log
}

export interface ExtensionInformers extends Loop {
  /** By the id of `extensionResource`. */
  item(id: string, key: ObjectKey): OwnedItem | undefined
}

const retry = { firstMs: 1_000, maxMs: 300_000 }
/** A watch that ends earlier counts as a failure: a server that ends each at once is asked less and less often. */
const stableMs = 30_000
/** Objects and owner references of all kinds of a group. */
const mostOfGroup = 20_000

export function extensionInformers(
  needs: ExtensionInformerNeeds,
  graph: Pick<OwnershipGraph, 'observe'>,
): ExtensionInformers {
  const { extensionObjects } = needs
  const held = new Map<string, number>()
  const followed = new Map<string, Followed>()
  return {
    name: 'extension-informers',
    item(id, key) {
      const one = followed.get(id)
      const object = one?.objects.get(keyText(key))
      return one && object && { resource: extensionResource(one.kind), object }
    },
    async run(signal) {
      const running = new Map<string, Promise<void>>()
      const start = (id: string, kind: ExtensionKind) => {
        const one = followedKind(kind, graph, held)
        followed.set(id, one)
        const before = running.get(id)
        const run = withOwnSignal(signal, async (own) => {
          await before
          one.ending.signal.addEventListener('abort', () => own.abort(), { once: true })
          if (!one.ending.signal.aborted) await follow(one, needs, own.signal)
          await one.clear()
        })
        running.set(id, run)
      }
      const sync = () => {
        const wanted = new Map(extensionObjects.kinds().map((kind) => [extensionResource(kind).id, kind]))
        for (const [id, { kind, ending }] of followed) {
          if (isSame(wanted.get(id), kind)) continue
          ending.abort('The kind is no longer served')
          followed.delete(id)
        }
        for (const [id, kind] of wanted) if (!followed.has(id)) start(id, kind)
      }
      const stop = extensionObjects.onChange(sync)
      sync()
      try {
        await aborted(signal)
      } finally {
        stop()
        await Promise.all(running.values())
      }
    },
  }
}

function isSame(one: ExtensionKind | undefined, other: ExtensionKind): boolean {
  return one?.version === other.version && one.kind === other.kind && one.namespaced === other.namespaced
}

type Followed = {
  readonly kind: ExtensionKind
  readonly objects: ReadonlyMap<string, ExtensionObject>
  readonly ending: AbortController
  /** Throws where the group has too many. */
  readonly put: (object: ExtensionObject) => void
  readonly drop: (key: Partial<ObjectKey>) => void
  /** Nothing states that they are deleted: what belongs to them stays. */
  readonly clear: () => Promise<void>
}

/** `held`: the objects and references of each group. */
function followedKind(
  kind: ExtensionKind,
  graph: Pick<OwnershipGraph, 'observe'>,
  held: Map<string, number>,
): Followed {
  const [resource, { group }] = [extensionResource(kind), kind]
  const objects = new Map<string, ExtensionObject>()
  const count = (sign: 1 | -1, { metadata: { ownerReferences = [] } }: ExtensionObject) =>
    held.set(group, (held.get(group) ?? 0) + sign * (1 + ownerReferences.length))
  const drop = (key: Partial<ObjectKey>) => {
    const previous = objects.get(keyText(key))
    if (previous === undefined) return
    objects.delete(keyText(key))
    count(-1, previous)
    graph.observe(resource, undefined, previous)
  }
  return {
    kind,
    objects,
    ending: new AbortController(),
    put(object) {
      const key = keyText(object.metadata)
      const { uid, resourceVersion } = object.metadata
      const previous = objects.get(key)
      if (previous?.metadata.uid === uid && previous.metadata.resourceVersion === resourceVersion) return
      if (previous !== undefined && previous.metadata.uid !== uid) drop(object.metadata)
      const present = objects.get(key)
      if (present !== undefined) count(-1, present)
      count(1, object)
      objects.set(key, object)
      graph.observe(resource, object, present)
      if ((held.get(group) ?? 0) > mostOfGroup) {
        throw new Error(`the kinds of ${group} have more than ${mostOfGroup} objects and owner references`)
      }
    },
    drop,
    clear: () => eachInTurns([...objects.values()], ({ metadata }) => drop(metadata)),
  }
}

async function follow(one: Followed, needs: ExtensionInformerNeeds, signal: AbortSignal): Promise<void> {
  const { extensionObjects, clock, log } = needs
  const failures = connectionFailures(stableMs)
  let from: string | undefined
  while (!signal.aborted) {
    const beganMs = clock.monotonicMs()
    try {
      from ??= await listAgain(one, extensionObjects, signal)
      await watchFrom(one, extensionObjects, { from, reached: (version) => (from = version) }, signal)
      failures.ended(clock.monotonicMs() - beganMs)
    } catch (error) {
      if (signal.aborted) return
      from = undefined
      if (!isApiError(error, 'Expired')) failures.refused()
      const { group, resource } = one.kind
      log.warn('Objects of an extension server not followed', { resource: `${resource}.${group}`, error })
    }
    if (failures.count > 0) await clock.sleep(backoffMs(failures.count - 1, retry, clock.random ?? Math.random), signal)
  }
}

async function listAgain(one: Followed, objects: ExtensionObjects, signal: AbortSignal): Promise<string> {
  const { items, resourceVersion } = await objects.list(one.kind, signal)
  const present = new Set(items.map(({ metadata }) => keyText(metadata)))
  await eachInTurns([...one.objects], ([key, { metadata }]) => {
    if (!present.has(key)) one.drop(metadata)
  })
  await eachInTurns(items, one.put)
  return resourceVersion
}

type Place = { readonly from: string; readonly reached: (resourceVersion: string) => void }

async function watchFrom(
  one: Followed,
  objects: ExtensionObjects,
  { from, reached }: Place,
  signal: AbortSignal,
): Promise<void> {
  await objects.watch(
    one.kind,
    {
      resourceVersion: from,
      take(event) {
        if (signal.aborted) return
        if (event.type === 'BOOKMARK') return reached(event.resourceVersion)
        if (event.type === 'DELETED') one.drop(event.object.metadata)
        else one.put(event.object)
        reached(event.object.metadata.resourceVersion)
      },
    },
    signal,
  )
}
