/** Writes what was decided about the endpoints of a Service. */

import type { ObjectReference } from '../../../api/meta.ts'
import type { Endpoints } from '../../../api/network/endpoints.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { keyText } from '../../store/informer.ts'
import { removeObject } from '../../store/object-removal.ts'
import { objectReference } from '../../store/references.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import type { AdmittedCreation } from '../workloads/admitted-creation.ts'
import { isNamespaceTerminating } from '../workloads/pod-control.ts'
import type { Mirroring } from './mirrored-slices.ts'
import type { SliceChanges } from './service-slices.ts'
import type { SliceIndex } from './slice-index.ts'

export type EndpointsNeeds = {
  readonly store: Store
  readonly creation: AdmittedCreation
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}

export interface EndpointsWrites {
  /** `service`: its key. Throws the error of the first write that fails, but for those in a namespace that is being deleted. */
  slices(service: string, changes: SliceChanges): Promise<void>
  /** The same for a Service with a selector, with an Event of the Service where a write fails. */
  selected(service: StoredObject<'services'>, changes: SliceChanges): Promise<void>
  /** The same, with an Event where addresses were left out. */
  mirrored(service: string, endpoints: StoredObject<'endpoints'>, mirroring: Mirroring): Promise<void>
  /** Creates the object, or replaces the version that it was made from. An Event of it shows a failure. */
  endpoints(object: Endpoints): Promise<void>
}

/** The accounts that Kubernetes runs these controllers as. */
const sliceAccount = 'endpointslice-controller'
const endpointsAccount = 'endpoint-controller'

export function endpointsWrites(
  { store, clock, creation, events, log }: EndpointsNeeds,
  index: SliceIndex,
): EndpointsWrites {
  /** False: the namespace is being deleted. */
  const createSlices = async (
    some: SliceChanges['create'],
    wrote: (slice: StoredObject<'endpointslices'>) => void,
  ): Promise<boolean> => {
    try {
      for (const slice of some) {
        await yieldTurn()
        wrote(await creation.create('endpointslices', slice, sliceAccount))
      }
      return true
    } catch (error) {
      if (!isNamespaceTerminating(error)) throw error
      return false
    }
  }
  const slices = async (service: string, { create, update, remove }: SliceChanges) => {
    if (create.length + update.length + remove.length === 0) return
    await index.whileWriting(service, async (wrote) => {
      if (!(await createSlices(create, wrote))) return
      for (const slice of update) {
        await yieldTurn()
        wrote(await store.update('endpointslices', slice))
      }
      for (const slice of remove) {
        await yieldTurn()
        wrote(slice)
        await removeObject({ store, clock }, 'endpointslices', slice)
      }
    })
  }
  const warn = async (object: ObjectReference, component: string, reason: string, message: string) => {
    await events
      .record({ object, type: 'Warning', reason, message, component })
      .catch((error) => log.warn('Event not recorded', { reason, object: keyText(object), error: storyOf(error) }))
  }
  return {
    slices,
    async selected(service, changes) {
      const key = keyText(service.metadata)
      try {
        await slices(key, changes)
      } catch (error) {
        const message = `Error updating Endpoint Slices for Service ${key}: ${messageOf(error)}`
        await warn(objectReference(service), 'endpoint-slice-controller', 'FailedToUpdateEndpointSlices', message)
        throw error
      }
    },
    async mirrored(service, endpoints, { changes, skipped }) {
      await slices(service, changes)
      if (skipped === 0) return
      const most = 'A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset.'
      const message = `${most} ${skipped} addresses were skipped`
      const component = 'endpoint-slice-mirroring-controller'
      await warn(objectReference(endpoints), component, 'TooManyAddressesToMirror', message)
    },
    async endpoints(object) {
      try {
        if (object.metadata.resourceVersion === undefined) await creation.create('endpoints', object, endpointsAccount)
        else await store.update('endpoints', object)
      } catch (error) {
        if (isNamespaceTerminating(error)) return
        const { namespace = '', name = '', resourceVersion } = object.metadata
        const [reason, subject] =
          resourceVersion === undefined
            ? ['FailedToCreateEndpoint', 'create endpoint for service']
            : ['FailedToUpdateEndpoint', 'update endpoint']
        const message = `Failed to ${subject} ${namespace}/${name}: ${messageOf(error)}`
        await warn({ kind: 'Endpoints', apiVersion: 'v1', namespace, name }, endpointsAccount, reason, message)
        throw error
      }
    },
  }
}
