/**
 * Loop: keeps what extension servers report that they serve (kube-aggregator, pkg/apiserver/handler_discovery.go). Discovery answers
 * from it and waits for none of them.
 */
import { setMaxListeners } from 'node:events'
import type { APIService } from '../../../api/registration/api-service.ts'
import { availableCondition } from '../../../api/registration/api-service.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Controller, runController } from '../../../daemon/controller.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { equalJSON } from '../../store/equal-json.ts'
import { parseJsonBody } from '../wire/request-body.ts'
import type { ApiServices, StoredApiService } from './api-services.ts'
import { type DescriptionState, refreshedDescription } from './description-state.ts'
import type { DiscoveredVersion, ExtensionDiscovery } from './discovery-needs.ts'
import { mostDescriptionBytes } from './extension-description.ts'
import { descriptionHash, type ExtensionResource, resourcesInGroups, resourcesInList } from './extension-documents.ts'
import type { ExtensionAnswer, ExtensionServers } from './extension-servers.ts'

export type ExtensionDiscoveryNeeds = {
  readonly apiServices: ApiServices
  readonly servers: Pick<ExtensionServers, 'ask'>
  readonly clock: Clock
  readonly log: Log
}

export type KeptDiscovery = ExtensionDiscovery &
  Loop & {
    /** Called when a server lists other kinds, or its answers begin or end. Returns how to stop that. */
    onChange(listener: () => void): () => void
  }

type Kept = {
  readonly uid: string | undefined
  readonly spec: APIService['spec']
  readonly resources: readonly ExtensionResource[]
  readonly hash: string | undefined
  readonly description: DescriptionState
  readonly isCurrent: boolean
}

const refreshMs = 60_000
const retryMs = 10_000
const atOnce = 8
const mostDiscoveryBytes = 1024 * 1024
const mostIndexBytes = 256 * 1024
/** The most characters of the descriptions of all servers together, unpacked. */
const mostDescriptionsLength = 8 * 1024 * 1024
const aggregatedForms = ['v2', 'v2beta1'].map(
  (version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
)
const none: DiscoveredVersion = { freshness: 'Stale', resources: [] }

export function extensionDiscovery(needs: ExtensionDiscoveryNeeds): KeptDiscovery {
  const { apiServices, clock, log } = needs
  const kept = new Map<string, Kept>()
  const listeners = new Set<() => void>()
  const keep = (name: string, now: Kept | undefined) => {
    const before = kept.get(name)
    if (now === undefined) kept.delete(name)
    else kept.set(name, now)
    if (now?.isCurrent === before?.isCurrent && equalJSON(now?.resources, before?.resources)) return
    for (const listener of listeners) listener()
  }
  /** That of another server, or of an APIService that was made again, is of no use. */
  const keptOf = ({ metadata: { name = '', uid }, spec }: APIService) => {
    const found = kept.get(name)
    return found?.uid === uid && equalJSON(found?.spec.service, spec.service) ? found : undefined
  }
  const descriptionOf = async (
    apiService: StoredApiService,
    before: DescriptionState | undefined,
    signal: AbortSignal,
  ) => {
    const { metadata, spec } = apiService
    const { name } = metadata
    const { group = '', version = '' } = spec
    const lengthOfOthers = () =>
      [...kept].reduce(
        (sum, [other, { description }]) => sum + (other === name ? 0 : (description.kept?.length ?? 0)),
        0,
      )
    const now = await refreshedDescription(before, {
      version: { group, version },
      mostLength: () => mostDescriptionsLength - lengthOfOthers(),
      nowMs: clock.monotonicMs(),
      ask: (ifNoneMatch) =>
        needs.servers.ask(apiService, '/openapi/v2', {
          ...{ accept: 'application/json', mostBytes: mostDescriptionBytes, ifNoneMatch, signal },
        }),
    })
    if (now.problem !== undefined && now.problem !== before?.problem && !signal.aborted) {
      log.warn('The description of an extension server cannot be read', { name, error: now.problem })
    }
    return now
  }
  const refresher: Controller = {
    name: 'extension-discovery',
    async reconcile(name, signal) {
      const apiService = apiServices.remotes().find(({ metadata }) => metadata.name === name)
      if (apiService === undefined) {
        keep(name, undefined)
        return undefined
      }
      const before = keptOf(apiService)
      const isAvailable = availableCondition(apiService)?.status === 'True'
      try {
        if (!isAvailable) throw new Error('it is not available')
        const found = await documentsOf(apiService, needs.servers, signal)
        const description = await descriptionOf(apiService, before?.description, signal)
        keep(name, { uid: apiService.metadata.uid, spec: apiService.spec, ...found, description, isCurrent: true })
        return { requeueAfterMs: refreshMs }
      } catch (error) {
        log.debug('Discovery of an extension server not refreshed', { name, error: messageOf(error) })
        keep(name, before && { ...before, isCurrent: false })
        return { requeueAfterMs: isAvailable ? retryMs : refreshMs }
      }
    },
  }
  return {
    versionOf(apiService) {
      const found = keptOf(apiService)
      if (found === undefined) return none
      return { freshness: found.isCurrent ? 'Current' : 'Stale', resources: found.resources }
    },
    descriptionHash: (apiService) => keptOf(apiService)?.hash,
    description: (apiService) => keptOf(apiService)?.description.kept,
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    name: 'extension-discovery',
    async run(signal) {
      setMaxListeners(0, signal) // each check listens
      const queue = workQueue(clock)
      const stop = apiServices.onChange((name) => queue.add(name))
      for (const { metadata } of apiServices.remotes()) queue.add(metadata.name)
      try {
        await runController(refresher, queue, log, signal, atOnce)
      } finally {
        stop()
        kept.clear()
      }
    },
  }
}

type Found = Pick<Kept, 'resources' | 'hash'>

async function documentsOf(
  apiService: StoredApiService,
  servers: Pick<ExtensionServers, 'ask'>,
  signal: AbortSignal,
): Promise<Found> {
  const { group = '', version = '' } = apiService.spec
  const read = async (path: string, accept: string, mostBytes: number) =>
    documentIn(await servers.ask(apiService, path, { accept, mostBytes, signal }))
  const json = 'application/json'
  const aggregated = await read('/apis', [...aggregatedForms, json].join(','), mostDiscoveryBytes)
  const resources =
    resourcesInGroups(aggregated, { group, version }) ??
    resourcesInList(await read(`/apis/${group}/${version}`, json, mostDiscoveryBytes), { group, version })
  if (resources === undefined) throw new Error(`its server does not list ${group}/${version}`)
  // Without a description kubectl leaves validation to the server.
  const index = await read('/openapi/v3', json, mostIndexBytes).catch(() => undefined)
  return { resources, hash: descriptionHash(index, { group, version }) }
}

/** undefined: the server has no such document. */
function documentIn({ code, body }: ExtensionAnswer): unknown {
  return code === 200 ? parseJsonBody(body) : undefined
}
