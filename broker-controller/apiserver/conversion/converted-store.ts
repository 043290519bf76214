/**
 * The store as a request sees it that names one version of a kind whose versions a webhook converts: what is read is converted to it, what
 * is written is converted to the storage version. All else is that of the store.
 */
import { randomUUID } from 'node:crypto'
import type { AnyObject } from '../../../api/meta.ts'
import { apiVersionOf, type ResourceName } from '../../../api/resources.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { isChangeCounted } from '../../store/changes.ts'
import { eachChange } from '../../store/each-change.ts'
import type { AnyStored, ChangeCursor, ObjectKey, Preconditions, Store, WatchEvent } from '../../store/store.ts'
import { type KindStrategy, shownForm } from '../handlers/strategy.ts'
import { refuseLarge, refuseManyValues } from '../wire/object-size.ts'
import { convertedChanges } from './converted-changes.ts'
import type { ConvertedObjects } from './converted-objects.ts'

export type ConvertedStoreNeeds = {
  readonly kind: KindStrategy
  readonly store: Store
  readonly objects: ConvertedObjects
  /** The apiVersion in which objects are written, and how they get into it. */
  readonly storedVersion: string
  readonly inStoredVersion: (object: AnyObject) => Promise<AnyObject>
  /** Counts a request that waits for the webhook. Throws TooManyRequests. */
  readonly wait: <T>(work: () => Promise<T>) => Promise<T>
  readonly clock: Clock
}

export function convertedStore(needs: ConvertedStoreNeeds): Store {
  const { kind, store } = needs
  const own = ownObjects(needs)
  const isOwn = (resource: ResourceName) => resource === kind.id
  // A store gives for a custom kind what this one gives: any object.
  const as = <T>(value: unknown) => value as T
  const changes: Store['changes'] = (resource, from) =>
    isOwn(resource) ? as(own.changes(from)) : store.changes(resource, from)
  return {
    get: (resource, key) => (isOwn(resource) ? as(own.get(key)) : store.get(resource, key)),
    list: (resource, namespace) => (isOwn(resource) ? as(own.list(namespace)) : store.list(resource, namespace)),
    podsOfNode: (node) => store.podsOfNode(node),
    create: (resource, object) => (isOwn(resource) ? as(own.create(object)) : store.create(resource, object)),
    update: (resource, object, generation) =>
      isOwn(resource) ? as(own.write(object, 'update')) : store.update(resource, object, generation),
    updateStatus: (resource, object) =>
      isOwn(resource) ? as(own.write(object, 'updateStatus')) : store.updateStatus(resource, object),
    delete: (resource, key, preconditions) =>
      isOwn(resource) ? as(own.delete(key, preconditions)) : store.delete(resource, key, preconditions),
    async *watch(resource, from, signal) {
      yield* eachChange(changes(resource, from ?? (await store.version(resource))), signal)
    },
    changes,
    version: (resource) => store.version(resource),
    close: () => store.close(),
  }
}

function ownObjects({ kind, store, objects, storedVersion, inStoredVersion, wait, clock }: ConvertedStoreNeeds) {
  const { id } = kind
  const apiVersion = apiVersionOf(kind)
  const read = async (stored: AnyStored) => objects.known(stored) ?? wait(() => objects.one(stored))
  const toStore = async (object: AnyObject): Promise<AnyObject> => {
    if (storedVersion === apiVersion) return object
    const converted = await wait(() => inStoredVersion(object))
    refuseManyValues(converted, kind.mostValues)
    refuseLarge(converted, kind)
    return converted
  }
  return {
    async get(key: ObjectKey) {
      const stored = await store.get(id, key)
      return stored && read(stored)
    },
    async list(namespace: string | undefined) {
      const { items, resourceVersion } = await store.list(id, namespace)
      const isHere = items.every((object) => objects.known(object) !== undefined)
      const all = () => objects.all(items)
      return { items: isHere ? await all() : await wait(all), resourceVersion }
    },
    async create(object: AnyObject) {
      // The webhook is sent what the store would set.
      const { uid = randomUUID(), creationTimestamp = rfc3339(clock.wallMs()), generation = 1 } = object.metadata
      const whole = { ...object, metadata: { ...object.metadata, uid, creationTimestamp, generation } }
      return objects.one(await store.create(id, await toStore(whole)))
    },
    async write(object: AnyObject, how: 'update' | 'updateStatus') {
      const { name = '', namespace = '' } = object.metadata
      const before = await store.get(id, { namespace, name })
      const isPlain = storedVersion === apiVersion && (before === undefined || before['apiVersion'] === apiVersion)
      if (isPlain) return store[how](id, object)
      const shown = before && shownForm(kind, await read(before))
      const isRaised = how === 'update' && shown !== undefined && isChangeCounted(kind, shown, object)
      // Its generation is decided against this version.
      const resourceVersion = object.metadata.resourceVersion ?? before?.metadata.resourceVersion
      const exact = resourceVersion === undefined ? object : withVersion(object, resourceVersion)
      return objects.one(await store.update(id, await toStore(exact), isRaised ? 'raised' : 'kept'))
    },
    async delete(key: ObjectKey, preconditions: Preconditions | undefined) {
      const before = await store.get(id, key)
      const shown = before && (await read(before))
      const gone = await store.delete(id, key, preconditions)
      const isSame = before?.metadata.resourceVersion === preconditions?.resourceVersion
      return shown !== undefined && isSame ? withVersion(shown, gone.metadata.resourceVersion) : objects.one(gone)
    },
    changes(from: string) {
      const cursor = store.changes(id, from) as ChangeCursor<WatchEvent<ResourceName>>
      return convertedChanges(cursor, objects, clock)
    },
  }
}

function withVersion<T extends AnyObject>(object: T, resourceVersion: string): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion } }
}
