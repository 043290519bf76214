/** Objects of extension servers in memory, as the garbage collector reads them. */
import { ApiError } from '../../api/api-error.ts'
import type { ExtensionEvent, ExtensionKind, ExtensionObject } from '../../api/registration/extension-object.ts'
import { aborted } from '../../daemon/aborted.ts'
import type { ExtensionObjects } from '../controllers/garbage/extension-objects.ts'
import type { ObjectKey } from '../store/store.ts'

export interface ExtensionMemory extends ExtensionObjects {
  put(kind: ExtensionKind, metadata: Partial<ExtensionObject['metadata']> & { readonly name: string }): ExtensionObject
  /** `isSilent`: watches do not deliver it. */
  delete(kind: ExtensionKind, name: string, isSilent?: boolean): void
  /** What a watch of the kind delivers besides, whatever its server has. */
  deliver(kind: ExtensionKind, event: ExtensionEvent): void
  names(): readonly string[]
  /** `hanging`: it does not answer, and that was not noticed so far. undefined: it is not registered. */
  state: { [group: string]: 'current' | 'stale' | 'hanging' | undefined }
  /** Notifies the listeners: states or kinds are others. */
  changed(): void
  /** Requests, as `get flunders/a`. */
  readonly asked: string[]
}

export const flunders: ExtensionKind = {
  ...{ group: 'wardle.example.com', version: 'v1', resource: 'flunders', kind: 'Flunder', namespaced: true },
}

export function extensionMemory(...kinds: readonly ExtensionKind[]): ExtensionMemory {
  const listeners = new Set<() => void>()
  const objects = new Map<string, ExtensionObject>()
  const watches = new Map<string, Set<(event: ExtensionEvent) => void>>()
  const state: ExtensionMemory['state'] = Object.fromEntries(kinds.map(({ group }) => [group, 'current']))
  const asked: string[] = []
  const history: { readonly kind: ExtensionKind; readonly event: ExtensionEvent; readonly version: number }[] = []
  let version = 0
  const keyOf = ({ group, resource }: ExtensionKind, { namespace = '', name = '' }: Partial<ObjectKey>) =>
    `${group}/${resource}/${namespace}/${name}`
  const deliver = (kind: ExtensionKind, event: ExtensionEvent) => {
    history.push({ kind, event, version })
    for (const take of watches.get(kind.resource + kind.group) ?? []) take(event)
  }
  const write = (kind: ExtensionKind, object: ExtensionObject) => {
    const { finalizers, deletionTimestamp } = object.metadata
    const key = keyOf(kind, object.metadata)
    const isGone = deletionTimestamp !== undefined && (finalizers ?? []).length === 0
    const type = isGone ? 'DELETED' : objects.has(key) ? 'MODIFIED' : 'ADDED'
    const stored = { metadata: { ...object.metadata, resourceVersion: String(++version) } }
    if (isGone) objects.delete(key)
    else objects.set(key, stored)
    deliver(kind, { type, object: stored })
    return stored
  }
  const answers = async ({ group, resource }: ExtensionKind, what: string, signal: AbortSignal) => {
    asked.push(`${what.split(' ')[0]} ${resource}${what.slice((what.split(' ')[0] ?? '').length + 1)}`)
    if (state[group] === 'hanging') await aborted(signal)
    if (state[group] !== 'current') throw new Error(`the server of ${group} does not answer`)
  }
  return {
    state,
    asked,
    put: (kind, metadata) =>
      write(kind, {
        metadata: {
          ...{ namespace: 'default', uid: `uid-${metadata.name}`, resourceVersion: '' },
          ...objects.get(keyOf(kind, { namespace: 'default', ...metadata }))?.metadata,
          ...metadata,
        },
      }),
    delete(kind, name, isSilent = false) {
      const key = keyOf(kind, { namespace: 'default', name })
      const object = objects.get(key)
      objects.delete(key)
      version += 1
      if (object !== undefined && !isSilent) deliver(kind, { type: 'DELETED', object })
    },
    deliver,
    names: () => [...objects.values()].map(({ metadata }) => metadata.name).sort(),
    changed: () => listeners.forEach((listener) => void listener()),
    kinds: () => kinds.filter(({ group }) => state[group] !== undefined),
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    serves: (apiVersion) =>
      kinds.some(({ group, version: own }) => `${group}/${own}` === apiVersion && state[group] !== undefined),
    kindOf(apiVersion, kind) {
      const found = kinds.filter(({ group, version: own }) => `${group}/${own}` === apiVersion)
      if (found.some(({ group }) => state[group] === 'stale')) throw new Error(`the server of ${apiVersion} is away`)
      return found.find((one) => one.kind === kind)
    },
    async list(kind, signal) {
      await answers(kind, 'list ', signal)
      const items = [...objects].filter(([key]) => key.startsWith(keyOf(kind, {}).slice(0, -1)))
      return { items: items.map(([, object]) => object), resourceVersion: String(version) }
    },
    async watch(kind, { resourceVersion, take }, signal) {
      const later = history.filter((one) => one.kind === kind && one.version > Number(resourceVersion))
      for (const { event } of later) take(event)
      const all = watches.get(kind.resource + kind.group) ?? new Set()
      watches.set(kind.resource + kind.group, all.add(take))
      await aborted(signal)
      all.delete(take)
    },
    async get(kind, key, signal) {
      await answers(kind, `get /${key.name}`, signal)
      return objects.get(keyOf(kind, key))
    },
    async remove(kind, { metadata }, propagationPolicy, signal) {
      await answers(kind, `delete /${metadata.name} ${propagationPolicy}`, signal)
      const found = objects.get(keyOf(kind, metadata))
      if (found?.metadata.uid !== metadata.uid) throw new ApiError('Conflict', 'another uid')
      const held = propagationPolicy === 'Foreground' ? { finalizers: ['foregroundDeletion'] } : {}
      write(kind, { metadata: { ...found.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', ...held } })
    },
    async patch(kind, { metadata }, lists, signal) {
      await answers(kind, `patch /${metadata.name}`, signal)
      const found = objects.get(keyOf(kind, metadata))
      if (found?.metadata.resourceVersion !== metadata.resourceVersion)
        throw new ApiError('Conflict', 'a newer version')
      write(kind, { metadata: { ...found.metadata, ...lists } })
    },
  }
}
