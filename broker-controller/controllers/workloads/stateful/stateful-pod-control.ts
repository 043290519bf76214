/** Writes the pods of StatefulSets with their Events (pkg/controller/statefulset/stateful_pod_control.go). */
import { isApiError } from '../../../../api/api-error.ts'
import type { PodTemplateSpec } from '../../../../api/pod.ts'
import { messageOf } from '../../../../daemon/errors.ts'
import { rewrite } from '../../../store/rewrite.ts'
import type { StoredObject, StoredPod } from '../../../store/store.ts'
import { removePod } from '../../pods/pod-removal.ts'
import { isNamespaceTerminating, type PodControlNeeds, podControl } from '../pod-control.ts'
import type { StatefulClaimControl } from './stateful-claim-control.ts'
import { withClaimsOfPlace } from './stateful-claims.ts'
import { statefulPod, withIdentity } from './stateful-identity.ts'

type StoredStatefulSet = StoredObject<'statefulsets'>

export interface StatefulPodControl {
  /** False: its namespace is being deleted. */
  create(set: StoredStatefulSet, ordinal: number, revision: string, template: PodTemplateSpec): Promise<boolean>
  /** The claims get their owners first: what goes with the pod must not outlive it. */
  delete(set: StoredStatefulSet, pod: StoredPod): Promise<void>
  identify(set: StoredStatefulSet, pod: StoredPod, ordinal: number): Promise<void>
  /** The claims of the pod: those that are missing while it waits for them, and their owners. */
  settleClaims(set: StoredStatefulSet, pod: StoredPod, ordinal: number): Promise<void>
  /** An Event: it waits after a restore, because a node may run a pod of a name that it lacks. */
  recordHeld(set: StoredStatefulSet): Promise<void>
}

export function statefulPodControl(
  needs: PodControlNeeds,
  claims: StatefulClaimControl,
  component: string,
): StatefulPodControl {
  const { record } = podControl(needs, component)
  /** `act` is true when something was written. An error is recorded, unless it is `quiet`, and thrown. */
  const recorded = async (
    set: StoredStatefulSet,
    { verb, pod }: { readonly verb: 'Create' | 'Delete' | 'Update'; readonly pod: string },
    act: () => Promise<boolean>,
    isQuiet: (error: unknown) => boolean = () => false,
  ) => {
    const subject = `${verb.toLowerCase()} Pod ${pod} in StatefulSet ${set.metadata.name}`
    try {
      if (!(await act())) return false
    } catch (error) {
      if (!isQuiet(error)) {
        const message = `${subject} failed error: ${messageOf(error)}`
        await record(set, { type: 'Warning', reason: `Failed${verb}`, message })
      }
      throw error
    }
    await record(set, { type: 'Normal', reason: `Successful${verb}`, message: `${subject} successful` })
    return true
  }
  return {
    async recordHeld(set) {
      const message = `Pods are not created or deleted after the restore: ${needs.hold?.describe()}`
      await record(set, { type: 'Warning', reason: 'AcceptsCheckpoints', message })
    },
    async create(set, ordinal, revision, template) {
      const made = statefulPod(set, ordinal, { name: revision, template })
      const pod = { ...made, spec: withClaimsOfPlace(set, ordinal, made.spec) }
      const act = async () => {
        try {
          if (!(await claims.make(set, ordinal))) return false
          await claims.retain(set, await needs.creation.create('pods', pod, component))
          return true
        } catch (error) {
          if (isNamespaceTerminating(error)) return false
          throw error
        }
      }
      // A pod of another owner has the name.
      const isQuiet = (error: unknown) => isApiError(error, 'AlreadyExists')
      return await recorded(set, { verb: 'Create', pod: pod.metadata.name ?? '' }, act, isQuiet)
    },
    async delete(set, pod) {
      const change = (fresh: StoredPod) => (fresh.metadata.deletionTimestamp === undefined ? fresh : undefined)
      const act = async () => {
        await claims.retain(set, pod)
        return await removePod(needs, pod, { change })
      }
      await recorded(set, { verb: 'Delete', pod: pod.metadata.name }, act)
    },
    async identify(set, pod, ordinal) {
      const { name, namespace = '', uid } = pod.metadata
      const change = (fresh: StoredPod) => withIdentity(fresh, ordinal)
      const act = async () => (await rewrite(needs, 'pods', { key: { namespace, name }, uid, change })) !== undefined
      await recorded(set, { verb: 'Update', pod: name }, act)
    },
    async settleClaims(set, pod, ordinal) {
      // A claim that is refused has an Event of its own: no update of the pod failed.
      if (pod.status?.phase === 'Pending') await claims.make(set, ordinal)
      const act = async () => {
        await claims.retain(set, pod)
        return false
      }
      await recorded(set, { verb: 'Update', pod: pod.metadata.name }, act)
    },
  }
}
