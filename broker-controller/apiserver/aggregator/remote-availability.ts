/** Loop: checks that the servers of APIServices answer (kube-aggregator, pkg/controllers/status/remote/remote_available_controller.go). */
import { setMaxListeners } from 'node:events'
import { isApiError } from '../../../api/api-error.ts'
import type { Availability } from '../../../api/registration/api-service.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { type Controller, runController } from '../../../daemon/controller.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { informer } from '../../store/informer.ts'
import type { Store } from '../../store/store.ts'
import { type ApiServices, isOfExtension, type StoredApiService } from './api-services.ts'
import { afterCheck, againMs, serviceProblem } from './availability-check.ts'
import { boundedReason, type ExtensionServers, hostOf } from './extension-servers.ts'

export type RemoteAvailabilityNeeds = {
  readonly store: Store
  readonly apiServices: ApiServices
  readonly servers: Pick<ExtensionServers, 'ask'>
  readonly clock: Clock
  readonly log: Log
}

const atOnce = 8
/** Each may meet another endpoint; one success is enough. */
const attempts = 5
/** No attempt begins after it: a server that hangs is asked twice. */
const attemptsMs = 8_000
const mostBytes = 1024 * 1024

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

  /** false: others have written meanwhile. */
  const update = async (apiService: StoredApiService): Promise<boolean> => {
    try {
      await store.updateStatus('apiservices', apiService)
      return true
    } catch (error) {
      if (isApiError(error, 'Conflict') || isApiError(error, 'NotFound')) return false
      throw error
    }
  }

  return {
    name: 'remote-availability',
    async reconcile(name, signal) {
      const key = { namespace: '', name }
      const checked = await store.get('apiservices', key)
      if (checked === undefined || !isOfExtension(checked)) return undefined
      const found = await availabilityOf(checked, needs, signal)
      if (signal.aborted) return undefined
      // The check takes a while: others may have written since.
      const present = await store.get('apiservices', key)
      const next = afterCheck(checked, present, found, rfc3339(clock.wallMs()))
      if (next.write !== undefined && !(await update(next.write))) return { requeueAfterMs: againMs }
      return next.requeueAfterMs === undefined ? undefined : { requeueAfterMs: next.requeueAfterMs }
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
