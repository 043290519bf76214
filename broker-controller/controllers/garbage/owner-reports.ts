/**
 * Records Events of objects with owners that they cannot have (reportInvalidNamespaceOwnerRef in
 * pkg/controller/garbagecollector/graph_builder.go).
 */
import type { OwnerReference } from '../../../api/meta.ts'
import type { ResourceRegistry } from '../../../api/resources.ts'
import type { Log } from '../../../daemon/log.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { keyText } from '../../store/informer.ts'
import type { OwnedItem } from './ownership-graph.ts'

export interface OwnerReports {
  /** The owner is in another namespace than the object. */
  ownerElsewhere(item: OwnedItem, owner: OwnerReference): Promise<void>
}

export type OwnerReportNeeds = {
  readonly events: EventRecorder
  readonly resources: Pick<ResourceRegistry, 'get'>
  readonly log: Log
}

export function ownerReports({ events, resources, log }: OwnerReportNeeds): OwnerReports {
  return {
    async ownerElsewhere({ resource: { id, extension }, object: { metadata } }, owner) {
      const { name, namespace = '', uid } = metadata
      const { group = '', version = '', kind = '' } = extension ?? resources.get(id) ?? {}
      const apiVersion = group === '' ? version : `${group}/${version}`
      const object = { kind, apiVersion, ...(namespace !== '' && { namespace }), name, uid }
      const fields = `namespace: ${namespace}, name: ${owner.name}, uid: ${owner.uid}`
      const stated = `[${owner.apiVersion}/${owner.kind}, ${fields}]`
      const message = `ownerRef ${stated} does not exist in namespace ${JSON.stringify(namespace)}`
      const what = { type: 'Warning', reason: 'OwnerRefInvalidNamespace', message } as const
      try {
        await events.record({ object, component: 'garbage-collector-controller', ...what })
      } catch (error) {
        log.warn('Event not recorded', { reason: what.reason, object: keyText(metadata), error })
      }
    },
  }
}
