/**
 * Reads and changes objects of extension servers by their metadata, for the garbage collector. Everything that a server sends is bounded; what
 * it states counts for its own kinds only.
 */
import { ApiError } from '../../../api/api-error.ts'
import type { ExtensionEvent, ExtensionKind, ExtensionObject } from '../../../api/registration/extension-object.ts'
import { inGroupOrder } from '../../../api/registration/group-order.ts'
import { isObject } from '../../../api/text/json.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { tokenBuckets } from '../../../daemon/limits/token-bucket.ts'
import { eachInTurns } from '../../../daemon/limits/turn-limit.ts'
import type { ObjectKey } from '../../store/store.ts'
import { parseJsonBody } from '../wire/request-body.ts'
import type { ApiServices, StoredApiService } from './api-services.ts'
import type { ExtensionDiscovery } from './discovery-needs.ts'
import { extensionEventIn, extensionListIn, extensionObjectIn } from './extension-metadata.ts'
import { type AskOptions, boundedReason, type ExtensionAnswer, type ExtensionServers } from './extension-servers.ts'
import { linesOfWatch } from './watch-lines.ts'

export type ExtensionObjectNeeds = {
  readonly apiServices: Pick<ApiServices, 'remotes' | 'remoteAt'>
  readonly discovery: Pick<ExtensionDiscovery, 'versionOf'> & { onChange(listener: () => void): () => void }
  readonly servers: Pick<ExtensionServers, 'ask' | 'stream'>
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep' | 'random'>
}

const form = (as: string) => `application/json;as=${as};g=meta.k8s.io;v=v1,application/json`
const [objectForm, listForm] = [form('PartialObjectMetadata'), form('PartialObjectMetadataList')]
const pageSize = 250
const [mostPages, mostObjects] = [200, 10_000]
const [mostListBytes, mostListValues] = [4 * 1024 * 1024, 60_000]
const mostObjectBytes = 2 * 1024 * 1024
/** One after the other, so that a server without end is read slowly. */
const watchRate = { perSecond: 1_000_000, burst: 4_000_000 }
const bytesOfEvent = 1_000
/** As client-go chooses it: 5 to 10 minutes. */
const watchSeconds = 300

export function extensionObjects({ apiServices, discovery, servers, clock }: ExtensionObjectNeeds) {
  const rates = tokenBuckets(watchRate, clock)
  const serverOf = (kind: Pick<ExtensionKind, 'group' | 'version'>): StoredApiService => {
    const found = apiServices.remoteAt(kind)
    const name = `${kind.group}/${kind.version}`
    if (found === undefined) throw new Error(`no extension server stands for ${name} any more`)
    if (discovery.versionOf(found).freshness === 'Stale') throw new Error(`the server of ${name} does not answer`)
    return found
  }
  const ask = async (kind: ExtensionKind, path: string, more: Partial<AskOptions> & Pick<AskOptions, 'signal'>) =>
    await servers.ask(serverOf(kind), path, { accept: objectForm, mostBytes: mostObjectBytes, ...more })
  return {
    kinds: () => followedKinds(apiServices.remotes(), discovery),
    onChange: discovery.onChange,
    serves: (apiVersion: string) => apiServices.remoteAt(groupVersionOf(apiVersion)) !== undefined,
    kindOf(apiVersion: string, kind: string): ExtensionKind | undefined {
      const apiService = serverOf(groupVersionOf(apiVersion))
      return kindsOf(apiService, discovery).find((one) => one.kind === kind)
    },
    async list(kind: ExtensionKind, signal: AbortSignal) {
      const items: ExtensionObject[] = []
      let next = ''
      for (let page = 0; page < mostPages; page++) {
        const query = `?limit=${pageSize}${next === '' ? '' : `&continue=${encodeURIComponent(next)}`}`
        const answer = await ask(kind, `${pathOf(kind)}${query}`, {
          ...{ signal, accept: listForm, mostBytes: mostListBytes },
        })
        if (answer.code === 410) throw expired()
        const found = extensionListIn(bodyOf(answer, mostListValues))
        await eachInTurns(found.items, (item) => {
          // What no object can be is left out.
          const object = extensionObjectIn(item)
          if (object !== undefined) items.push(object)
        })
        if (items.length > mostObjects) throw new Error(`there are more than ${mostObjects} objects`)
        if (found.next === '') return { items, resourceVersion: found.resourceVersion }
        next = found.next
      }
      throw new Error(`its list has more than ${mostPages} parts`)
    },
    async watch(
      kind: ExtensionKind,
      { resourceVersion, take }: { readonly resourceVersion: string; readonly take: (event: ExtensionEvent) => void },
      signal: AbortSignal,
    ): Promise<void> {
      const seconds = Math.round(watchSeconds * (1 + (clock.random ?? Math.random)()))
      const query = `watch=1&allowWatchBookmarks=true&timeoutSeconds=${seconds}`
      const linesOf = linesOfWatch(mostObjectBytes)
      const { code } = await servers.stream(
        serverOf(kind),
        `${pathOf(kind)}?${query}&resourceVersion=${encodeURIComponent(resourceVersion)}`,
        {
          ...{ accept: objectForm, signal },
          async take(part) {
            let events = 0
            for (const line of linesOf(part)) {
              if (line.length === 0) continue
              events += 1
              take(eventIn(line))
            }
            const waitMs = rates.reserve(kind.group, part.length + events * bytesOfEvent)
            if (waitMs > 0) await clock.sleep(waitMs, signal)
          },
        },
      )
      if (code === 410) throw expired()
      if (code !== 200) throw new Error(`its server answers with status ${code}`)
    },
    async get(kind: ExtensionKind, key: ObjectKey, signal: AbortSignal): Promise<ExtensionObject | undefined> {
      const answer = await ask(kind, pathOf(kind, key), { signal })
      if (isNotFound(answer, key)) return undefined
      const found = extensionObjectIn(bodyOf(answer))
      if (found === undefined) throw new Error('its answer is not an object with a name and a uid')
      return found
    },
    async remove(kind: ExtensionKind, { metadata }: ExtensionObject, propagationPolicy: string, signal: AbortSignal) {
      const body = {
        ...{ kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy },
        preconditions: { uid: metadata.uid },
      }
      const answer = await ask(kind, pathOf(kind, metadata), { signal, method: 'DELETE', body })
      if (answer.code !== 404) bodyOf(answer)
    },
    async patch(
      kind: ExtensionKind,
      { metadata }: ExtensionObject,
      lists: Partial<Pick<ExtensionObject['metadata'], 'finalizers' | 'ownerReferences'>>,
      signal: AbortSignal,
    ) {
      const { uid, resourceVersion } = metadata
      const body = { metadata: { uid, resourceVersion, ...lists } }
      const answer = await ask(kind, pathOf(kind, metadata), { signal, method: 'PATCH', body })
      if (answer.code !== 404) bodyOf(answer)
    },
  }
}

function groupVersionOf(apiVersion: string): Pick<ExtensionKind, 'group' | 'version'> {
  const [group = '', version = ''] = apiVersion.split('/')
  return { group, version }
}

const followedVerbs = ['delete', 'list', 'watch']
/** Each is a connection to its server. */
const mostKindsOfGroup = 64

/** Each kind in the first version of its group (GetDeletableResources in garbagecollector.go). */
function followedKinds(
  remotes: readonly StoredApiService[],
  discovery: Pick<ExtensionDiscovery, 'versionOf'>,
): readonly ExtensionKind[] {
  const all = remotes.map((apiService) => {
    const { group = '', version = '', groupPriorityMinimum, versionPriority } = apiService.spec
    return { apiService, group, version, groupPriorityMinimum, versionPriority }
  })
  return inGroupOrder(all).flatMap(({ versions }) => {
    const ofGroup = new Map<string, ExtensionKind>()
    for (const { apiService } of versions) {
      for (const kind of kindsOf(apiService, discovery, followedVerbs)) {
        if (!ofGroup.has(kind.resource) && ofGroup.size < mostKindsOfGroup) ofGroup.set(kind.resource, kind)
      }
    }
    return [...ofGroup.values()]
  })
}

function kindsOf(
  apiService: StoredApiService,
  discovery: Pick<ExtensionDiscovery, 'versionOf'>,
  needed: readonly string[] = [],
): readonly ExtensionKind[] {
  const { group = '', version = '' } = apiService.spec
  return discovery.versionOf(apiService).resources.flatMap(({ resource, responseKind, scope, verbs = [] }) => {
    const kind = responseKind?.kind ?? ''
    if (!isNamePart(resource) || !isNamePart(kind) || !needed.every((verb) => verbs.includes(verb))) return []
    return [{ group, version, resource, kind, namespaced: scope === 'Namespaced' }]
  })
}

function isNamePart(name: string): boolean {
  return /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(name)
}

/** All objects, or one of them. */
function pathOf({ group, version, resource, namespaced }: ExtensionKind, key?: Partial<ObjectKey>): string {
  const collection = `/apis/${group}/${version}`
  if (key === undefined) return `${collection}/${resource}`
  const place = namespaced ? `/namespaces/${encodeURIComponent(key.namespace ?? '')}` : ''
  return `${collection}${place}/${resource}/${encodeURIComponent(key.name ?? '')}`
}

/**
 * Only a Status that states it counts: a server without routes for its kinds answers 404 as well, and the objects that name such an owner
 * would be deleted.
 */
function isNotFound({ code, body }: ExtensionAnswer, { name }: ObjectKey): boolean {
  if (code !== 404) return false
  const status = statusIn(body)
  const details = isObject(status?.['details']) ? status['details'] : {}
  return status?.['reason'] === 'NotFound' && (details['name'] ?? name) === name
}

function statusIn(body: Buffer): { readonly [name: string]: unknown } | undefined {
  try {
    const parsed = parseJsonBody(body)
    return isObject(parsed) && parsed['kind'] === 'Status' ? parsed : undefined
  } catch {
    return undefined
  }
}

/** Throws what the server states as its reason. */
function bodyOf({ code, body }: ExtensionAnswer, mostValues?: number): unknown {
  if (code >= 200 && code < 300) return body.length === 0 ? undefined : parseJsonBody(body, mostValues)
  const message = statusIn(body)?.['message']
  const reason = typeof message === 'string' && message !== '' ? message : `its server answers with status ${code}`
  throw code === 409 ? new ApiError('Conflict', boundedReason(reason)) : new Error(boundedReason(reason))
}

function eventIn(line: Buffer): ExtensionEvent {
  const event = extensionEventIn(parseJsonBody(line))
  if (event === 'expired') throw expired()
  if (event === undefined) throw new Error('a line of its watch cannot be read')
  return event
}

function expired(): ApiError {
  return new ApiError('Expired', 'the objects have to be listed again')
}
