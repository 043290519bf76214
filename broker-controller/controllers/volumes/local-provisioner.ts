/**
 * Loop: the provisioner of the class `local-path`, and of classes that give each claim a folder on a share. The volume is an object only: its
 * folder is made by the agent of its node when the first pod mounts it, so that nothing is waited for.
 */
import { isApiError } from '../../../api/api-error.ts'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import { localProvisioner } from '../../../api/storage/pools.ts'
import { shareProvisioners } from '../../../api/storage/shares.ts'
import { classOfClaim } from '../../../api/storage/volume-matching.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { type InformerNeeds, informer, keyFrom, keyText } from '../../store/informer.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { StoreOrigin } from '../../store/store.ts'
import type { StorageBoard } from '../../usage/storage-board.ts'
import type { AdmittedCreation } from '../workloads/admitted-creation.ts'
import type { StoredClaim } from './bind-writes.ts'
import { planProvision } from './local-provision-plan.ts'
import { planShareProvision } from './share-provision-plan.ts'

export type LocalProvisionerNeeds = InformerNeeds & {
  readonly creation: AdmittedCreation
  readonly events: EventRecorder
  readonly storage: Pick<StorageBoard, 'reportOf'>
  readonly origin: Pick<StoreOrigin, 'id'>
}

const account = 'local-path-provisioner'
/** A change of the claim is looked at at once; one of its class or node after this time. */
const againMs = 30_000

function isOurs(provisioner: string | undefined): boolean {
  return (
    provisioner !== undefined && (provisioner === localProvisioner || Object.hasOwn(shareProvisioners, provisioner))
  )
}

export function localProvisioning(needs: LocalProvisionerNeeds): Loop {
  const { store, clock, log, creation, events, storage } = needs
  const queue = workQueue(clock)
  const claims = informer(needs, 'persistentvolumeclaims', (present) => {
    const asked = present?.metadata.annotations?.[volumeAnnotations.provisioner]
    if (present !== undefined && isOurs(asked) && !present.spec?.volumeName) queue.add(keyText(present.metadata))
  })
  const classes = informer(needs, 'storageclasses', () => undefined)
  const nodes = informer(needs, 'nodes', () => undefined)

  const record = async (claim: StoredClaim, type: 'Normal' | 'Warning', reason: string, message: string) => {
    const { namespace, name, uid } = claim.metadata
    const object = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...(namespace && { namespace }), name, uid }
    try {
      const component = claim.metadata.annotations?.[volumeAnnotations.provisioner] ?? localProvisioner
      await events.record({ object, component, type, reason, message })
    } catch (error) {
      log.warn('Event not recorded', { reason, object: keyText(claim.metadata), error })
    }
  }

  /** The scheduler takes it as a refusal of the node. */
  const chooseAgain = ({ metadata }: StoredClaim) =>
    rewrite({ store, clock }, 'persistentvolumeclaims', {
      key: { namespace: metadata.namespace ?? '', name: metadata.name },
      uid: metadata.uid,
      change(fresh) {
        const { [volumeAnnotations.selectedNode]: selected, ...annotations } = fresh.metadata.annotations ?? {}
        if (selected === undefined || fresh.spec?.volumeName) return undefined
        return { ...fresh, metadata: { ...fresh.metadata, annotations } }
      },
    })

  const failed = (claim: StoredClaim, message: string) =>
    record(
      claim,
      'Warning',
      'ProvisioningFailed',
      `failed to provision volume with StorageClass "${classOfClaim(claim)}": ${message}`,
    )
  const make = async (claim: StoredClaim, volume: PersistentVolume): Promise<void> => {
    try {
      await creation.create('persistentvolumes', volume, account)
    } catch (error) {
      // Made before, for this claim: the name has its uid.
      if (isApiError(error, 'AlreadyExists')) return
      await failed(claim, messageOf(error))
      throw error
    }
    const message = `Successfully provisioned volume ${volume.metadata.name ?? ''}`
    await record(claim, 'Normal', 'ProvisioningSucceeded', message)
  }

  const reconcile = async (key: string): Promise<Reconciled> => {
    for (const source of [claims, classes, nodes]) source.catchUp()
    const claim = claims.get(keyFrom(key))
    if (claim === undefined) return undefined
    const storageClass = classes.get({ namespace: '', name: classOfClaim(claim) ?? '' })
    const facts = {
      ...{ claim, storageClass, nodes: nodes.all },
      node: (name: string) => nodes.get({ namespace: '', name }),
      freeBytes: (name: string, pool: string) =>
        storage.reportOf(name)?.pools.find(({ id }) => id === pool)?.availableBytes,
    }
    const asked = claim.metadata.annotations?.[volumeAnnotations.provisioner]
    const plan = asked === localProvisioner ? planProvision(facts) : planShareProvision(facts, needs.origin.id)
    if (plan.plan === 'nothing') return undefined
    if (plan.plan === 'refuse') {
      await failed(claim, plan.message)
      if (plan.chooseAgain) await chooseAgain(claim)
      return { requeueAfterMs: againMs }
    }
    await make(claim, plan.volume)
    return undefined
  }

  return {
    name: 'local-provisioner',
    run: (signal) =>
      runLoops(
        [
          ...[claims, classes, nodes].map(({ run }, index) => ({ name: `source-${index}`, run })),
          {
            name: 'work',
            async run(stop) {
              await Promise.all([claims, classes, nodes].map(({ listed }) => listed))
              if (!stop.aborted) await runController({ name: 'local-provisioner', reconcile }, queue, log, stop, 5)
            },
          },
        ],
        signal,
        log,
      ),
  }
}
