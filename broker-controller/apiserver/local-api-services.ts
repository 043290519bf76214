/**
 * Loop: keeps an APIService for each version of a group that the fleet serves by itself, built in or defined, as clients expect it
 * (kube-aggregator, pkg/controllers/autoregister; pkg/controlplane/controller/crdregistration).
 */
import { isApiError } from '../../api/api-error.ts'
import {
  type APIService,
  automanagedLabel,
  localAvailability,
  registrationGroup,
  registrationName,
  withAvailability,
} from '../../api/registration/api-service.ts'
import { builtInPriority, type GroupVersion, localPriority } from '../../api/registration/group-order.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import { type Controller, runController } from '../../daemon/controller.ts'
import type { Log } from '../../daemon/log.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import { equalJSON } from '../store/equal-json.ts'
import { informer } from '../store/informer.ts'
import type { Store } from '../store/store.ts'
import type { StoredApiService } from './aggregator/api-services.ts'
import { localGroupVersions } from './discovery.ts'
import type { KindRegistry } from './handlers/strategy.ts'

export type LocalApiServiceNeeds = {
  readonly store: Store
  /** `onChange`: undefined where the kinds stay as they are. */
  readonly kinds: KindRegistry & { readonly onChange?: (listener: () => void) => () => void }
  readonly clock: Clock
  readonly log: Log
}

/** What is done about one APIService. */
export type LocalStep =
  | { readonly kind: 'none' }
  | { readonly kind: 'create'; readonly apiService: APIService }
  | { readonly kind: 'update'; readonly apiService: StoredApiService }
  | { readonly kind: 'status'; readonly apiService: StoredApiService }
  | { readonly kind: 'delete' }

const none: LocalStep = { kind: 'none' }

/** `wanted`: what the fleet serves under this name; undefined: nothing. `now` is RFC 3339. */
export function localStep(
  wanted: GroupVersion | undefined,
  present: StoredApiService | undefined,
  now: string,
): LocalStep {
  if (present === undefined) return wanted === undefined ? none : { kind: 'create', apiService: localOf(wanted, now) }
  if (present.metadata.deletionTimestamp !== undefined) return none
  const isManaged = present.metadata.labels?.[automanagedLabel] !== undefined
  if (isManaged && wanted === undefined) return { kind: 'delete' }
  if (isManaged && wanted !== undefined) {
    const { spec } = localOf(wanted, now)
    if (!equalJSON(present.spec, spec)) return { kind: 'update', apiService: { ...present, spec } }
  }
  if (present.spec.service !== undefined) return none
  const status = withAvailability(present.status, localAvailability, now)
  return status === present.status ? none : { kind: 'status', apiService: { ...present, status } }
}

function localOf(one: GroupVersion, now: string): APIService {
  // A part of this program is registered at its start, what a definition adds all the time.
  const managed = builtInPriority(one) === undefined ? 'true' : 'onstart'
  return {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: registrationName(one), labels: { [automanagedLabel]: managed } },
    spec: { ...(one.group !== '' && { group: one.group }), version: one.version, ...localPriority(one) },
    status: withAvailability(undefined, localAvailability, now),
  }
}

export function localApiServices(needs: LocalApiServiceNeeds): Loop {
  const { kinds, clock, log } = needs
  return {
    name: 'local-api-services',
    async run(signal) {
      const queue = workQueue(clock)
      const present = informer(needs, 'apiservices', (now, before) => {
        const name = (now ?? before)?.metadata.name
        if (name !== undefined) queue.add(name)
      })
      let served = servedNames(kinds)
      const follow = () => {
        const before = served
        served = servedNames(kinds)
        for (const name of [...before.keys(), ...served.keys()]) {
          if (before.has(name) !== served.has(name)) queue.add(name)
        }
      }
      const stop = kinds.onChange?.(follow)
      const work = async (until: AbortSignal) => {
        await present.listed
        for (const name of served.keys()) queue.add(name)
        await runController(
          registrar(needs, (name) => served.get(name)),
          queue,
          log,
          until,
        )
      }
      try {
        const loops = [
          { name: 'api-services', run: present.run },
          { name: 'work', run: work },
        ]
        await runLoops(loops, signal, log)
      } finally {
        stop?.()
      }
    },
  }
}

/** The group of APIServices has none itself, as in Kubernetes. */
function servedNames(kinds: KindRegistry): ReadonlyMap<string, GroupVersion> {
  const served = localGroupVersions(kinds).filter(({ group }) => group !== registrationGroup)
  return new Map(served.map((one) => [registrationName(one), one]))
}

const raced = ['AlreadyExists', 'Conflict', 'NotFound'] as const

function registrar(
  { store, clock }: LocalApiServiceNeeds,
  servedAs: (name: string) => GroupVersion | undefined,
): Controller {
  return {
    name: 'local-api-services',
    async reconcile(name) {
      const key = { namespace: '', name }
      const present = await store.get('apiservices', key)
      const step = localStep(servedAs(name), present, rfc3339(clock.wallMs()))
      try {
        if (step.kind === 'create') await store.create('apiservices', step.apiService)
        if (step.kind === 'update') await store.update('apiservices', step.apiService)
        if (step.kind === 'status') await store.updateStatus('apiservices', step.apiService)
        if (step.kind === 'delete') await store.delete('apiservices', key, uidOf(present))
      } catch (error) {
        // Made, changed or deleted since: its change comes here again.
        if (!raced.some((reason) => isApiError(error, reason))) throw error
      }
      return undefined
    },
  }
}

function uidOf(present: StoredApiService | undefined) {
  return present === undefined ? {} : { uid: present.metadata.uid }
}
