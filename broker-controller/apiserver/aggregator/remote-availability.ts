/** Loop: checks that the servers of APIServices answer (kube-aggregator, pkg/controllers/status/remote/remote_available_controller.go). */
import { setMaxListeners } from 'node:events'
import { isApiError } from '../../../api/api-error.ts'
import type { Endpoints } from '../../../api/network/endpoints.ts'
import type { Service } from '../../../api/network/service.ts'
import { type Availability, withAvailability } from '../../../api/registration/api-service.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { type Controller, runController } from '../../../daemon/controller.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { equalJSON } from '../../store/equal-json.ts'
import { informer } from '../../store/informer.ts'
import type { Store } from '../../store/store.ts'
import { type ApiServices, isOfExtension, type StoredApiService } from './api-services.ts'
import { boundedReason, type ExtensionServers, hostOf } from './extension-servers.ts'

export type RemoteAvailabilityNeeds = {
  readonly store: Store
  readonly apiServices: ApiServices
  readonly servers: Pick<ExtensionServers, 'ask'>
  readonly clock: Clock
  readonly log: Log
}

const checkMs = 30_000
const failedCheckMs = 5_000
/** Others have written meanwhile. */
const againMs = 100
const atOnce = 8
/** Each may meet another endpoint; one success is enough. */
const attempts = 5
/** No attempt begins after it: a server that hangs is asked twice. */
const attemptsMs = 8_000
const mostBytes = 1024 * 1024

/** Why nothing can be asked: of the Service, its port and its endpoints. undefined: all are there. */
export function serviceProblem(
  { spec }: Pick<StoredApiService, 'spec'>,
  service: Service | undefined,
  endpoints: Endpoints | undefined,
): Availability | undefined {
  const { namespace = '', name = '', port = 443 } = spec.service ?? {}
  const place = `service/${name} in ${JSON.stringify(namespace)}`
  const failed = (reason: string, message: string): Availability => ({ status: 'False', reason, message })
  if (service === undefined) return failed('ServiceNotFound', `${place} is not present`)
  if ((service.spec?.type ?? 'ClusterIP') !== 'ClusterIP') return undefined
  const found = service.spec?.ports?.find((one) => one.port === port)
  if (found === undefined) return failed('ServicePortError', `${place} is not listening on port ${port}`)
  if (endpoints === undefined) return failed('EndpointsNotFound', `cannot find endpoints for ${place}`)
  const portName = found.name ?? ''
  const isReady = endpoints.subsets?.some(
    ({ addresses = [], ports = [] }) => addresses.length > 0 && ports.some((one) => (one.name ?? '') === portName),
  )
  if (isReady) return undefined
  const missing = `endpoints for ${place} have no addresses with port name ${JSON.stringify(portName)}`
  return failed('MissingEndpoints', missing)
}

export function remoteAvailability(needs: RemoteAvailabilityNeeds): Loop {
  const { apiServices, clock, log } = needs
  return {
    name: 'remote-availability',
    async run(signal) {
      setMaxListeners(0, signal) // each check listens
      const queue = workQueue(clock)
      const changed = (key: { readonly namespace?: string; readonly name?: string }) => {
        for (const { metadata, spec } of apiServices.remotes()) {
          if (spec.service?.name === key.name && spec.service?.namespace === key.namespace) queue.add(metadata.name)
        }
      }
      const services = informer(needs, 'services', (now, before) => changed((now ?? before)?.metadata ?? {}))
      const endpoints = informer(needs, 'endpoints', (now, before) => changed((now ?? before)?.metadata ?? {}))
      const stop = apiServices.onChange((name) => queue.add(name))
      for (const { metadata } of apiServices.remotes()) queue.add(metadata.name)
      const loops = [
        { name: 'services', run: services.run },
        { name: 'endpoints', run: endpoints.run },
        { name: 'work', run: (until: AbortSignal) => runController(checker(needs), queue, log, until, atOnce) },
      ]
      try {
        await runLoops(loops, signal, log)
      } finally {
        stop()
      }
    },
  }
}

function checker(needs: RemoteAvailabilityNeeds): Controller {
  const { store, clock } = needs
  return {
    name: 'remote-availability',
    async reconcile(name, signal) {
      const key = { namespace: '', name }
      const apiService = await store.get('apiservices', key)
      if (apiService === undefined || !isOfExtension(apiService)) return undefined
      const found = await availabilityOf(apiService, needs, signal)
      if (signal.aborted) return undefined
      // The check takes a while: others may have written since.
      const present = await store.get('apiservices', key)
      if (present === undefined) return undefined
      if (!equalJSON(present.spec, apiService.spec)) return { requeueAfterMs: againMs }
      const status = withAvailability(present.status, found, rfc3339(clock.wallMs()))
      if (status !== present.status) {
        try {
          await store.updateStatus('apiservices', { ...present, status })
        } catch (error) {
          if (!isApiError(error, 'Conflict') && !isApiError(error, 'NotFound')) throw error
          return { requeueAfterMs: againMs }
        }
      }
      return { requeueAfterMs: found.reason === 'FailedDiscoveryCheck' ? failedCheckMs : checkMs }
    },
  }
}

async function availabilityOf(
  apiService: StoredApiService,
  { store, servers, clock }: RemoteAvailabilityNeeds,
  signal: AbortSignal,
): Promise<Availability> {
  const { namespace = '', name = '' } = apiService.spec.service ?? {}
  const key = { namespace, name }
  const [service, endpoints] = [await store.get('services', key), await store.get('endpoints', key)]
  const problem = serviceProblem(apiService, service, endpoints)
  if (problem !== undefined) return problem
  const beganMs = clock.monotonicMs()
  let message = ''
  for (let left = attempts; left > 0 && clock.monotonicMs() - beganMs < attemptsMs; left--) {
    const failure = await discoveryFailure(apiService, servers, signal)
    if (failure === undefined) return { status: 'True', reason: 'Passed', message: 'all checks passed' }
    message = failure
    if (signal.aborted) break
  }
  return { status: 'False', reason: 'FailedDiscoveryCheck', message }
}

/** undefined: its server answers where each has to. */
async function discoveryFailure(
  apiService: StoredApiService,
  servers: Pick<ExtensionServers, 'ask'>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { group = '', version = '', service } = apiService.spec
  const path = `/apis/${group}/${version}`
  const url = `https://${hostOf(apiService.spec)}:${service?.port ?? 443}${path}`
  const failure = (because: string) => boundedReason(`failing or missing response from ${url}: ${because}`)
  try {
    const { code } = await servers.ask(apiService, path, { accept: 'application/json', mostBytes, signal })
    return code >= 200 && code < 300 ? undefined : failure(`bad status from ${url}: ${code}`)
  } catch (error) {
    return failure(messageOf(error))
  }
}
