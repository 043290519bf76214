/** Creates and deletes the pods of workloads, with the Events of their owners (RealPodControl in pkg/controller/controller_utils.go). */
import { isApiError } from '../../../api/api-error.ts'
import { dnsSubdomainProblem } from '../../../api/names.ts'
import type { Pod, PodTemplateSpec } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import type { RestoreHold } from '../../store/checkpoints/restore-hold.ts'
import type { Occurrence } from '../../store/event-correlation.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { keyText } from '../../store/informer.ts'
import { objectReference } from '../../store/references.ts'
import type { AnyStored, Store, StoredPod } from '../../store/store.ts'
import { removePod } from '../pods/pod-removal.ts'
import type { AdmittedCreation } from './admitted-creation.ts'
import { controllerReference } from './controller-ref.ts'

export type PodControlNeeds = {
  readonly store: Store
  readonly creation: AdmittedCreation
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
  /** What waits after a restore; undefined: the store was not restored. */
  readonly hold?: RestoreHold
}

export interface PodControl {
  /**
   * Creates a pod of the owner with SuccessfulCreate, or throws the ApiError of a refusal, with FailedCreate. `change`: what the
   * template does not have, as a name or a node. In a namespace that is being deleted nothing is created, and no Event is recorded.
   */
  create(owner: AnyStored, template: PodTemplateSpec, change?: (pod: Pod) => Pod): Promise<StoredPod | undefined>
  /** Deletes a pod with its grace period and SuccessfulDelete; a pod that is gone or leaving is left alone. */
  delete(owner: AnyStored, pod: StoredPod): Promise<void>
  /** An Event of the owner. */
  record(owner: AnyStored, event: Pick<Occurrence, 'type' | 'reason' | 'message'>): Promise<void>
}

/**
 * `component`: the controller, as its Events are called: `replicaset-controller`. `account`: its service account, where that has
 * another name.
 */
export function podControl(needs: PodControlNeeds, component: string, account = component): PodControl {
  const { creation, events, log } = needs
  const record: PodControl['record'] = async (owner, event) => {
    try {
      await events.record({ object: objectReference(owner), component, ...event })
    } catch (error) {
      log.warn('Event not recorded', { reason: event.reason, object: keyText(owner.metadata), error })
    }
  }
  return {
    record,
    async create(owner, template, change = (pod) => pod) {
      try {
        const pod = await creation.create('pods', change(podOfTemplate(owner, template)), account)
        const message = `Created pod: ${pod.metadata.name}`
        await record(owner, { type: 'Normal', reason: 'SuccessfulCreate', message })
        return pod
      } catch (error) {
        if (isNamespaceTerminating(error)) return undefined
        const message = `Error creating: ${messageOf(error)}`
        await record(owner, { type: 'Warning', reason: 'FailedCreate', message })
        throw error
      }
    },
    async delete(owner, pod) {
      const { name } = pod.metadata
      const change = (fresh: StoredPod) => (fresh.metadata.deletionTimestamp === undefined ? fresh : undefined)
      try {
        if (!(await removePod(needs, pod, { change }))) return
      } catch (error) {
        const message = `Error deleting: ${messageOf(error)}`
        await record(owner, { type: 'Warning', reason: 'FailedDelete', message })
        throw new Error(`unable to delete pods: ${messageOf(error)}`, { cause: error })
      }
      await record(owner, { type: 'Normal', reason: 'SuccessfulDelete', message: `Deleted pod: ${name}` })
    },
  }
}

/** The pod that its owner wants, without a name of its own (GetPodFromTemplate). */
export function podOfTemplate(owner: AnyStored, { metadata, spec }: PodTemplateSpec): Pod {
  const { labels, annotations, finalizers } = metadata ?? {}
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      generateName: podNameBeginning(owner.metadata.name),
      ...(owner.metadata.namespace !== undefined && { namespace: owner.metadata.namespace }),
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ...(finalizers && { finalizers }),
      ownerReferences: [controllerReference(owner)],
    },
    spec,
  }
}

/** `web-`, or `web` where that makes no name of a pod (getPodsPrefix). The character after a dash stands for what is generated. */
function podNameBeginning(owner: string): string {
  const beginning = `${owner}-`
  return dnsSubdomainProblem(`${beginning}x`) === undefined ? beginning : owner
}

export function isNamespaceTerminating(error: unknown): boolean {
  return (
    isApiError(error, 'Forbidden') &&
    (error.details?.causes ?? []).some(({ reason }) => reason === namespaceTerminatingCause)
  )
}

/** core/v1 NamespaceTerminatingCause. */
const namespaceTerminatingCause = 'NamespaceTerminating'
