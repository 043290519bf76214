/**
 * Claims and volumes of checkpoints. A volume names a path on a machine, so only what a controller of this fleet has sent is accepted, and only
 * for claims of the node's own pods.
 */
import { isApiError } from '../../../../api/api-error.ts'
import type { AnyObject } from '../../../../api/meta.ts'
import { learntFromAnnotation } from '../../../../api/node/node-checkpoint.ts'
import type { Pod } from '../../../../api/pod.ts'
import { type ClaimRecord, readClaimRecord } from '../../../../api/storage/claim-record.ts'
import type { ProvenRecord } from '../../../../api/storage/node-claim.ts'
import { claimsOfPod } from '../../../../api/storage/pod-claims.ts'
import { nodeReference } from '../../../store/references.ts'
import { removeIfThere, rewrite } from '../../../store/rewrite.ts'
import { warnLimited } from '../../handlers/resource-request.ts'
import type { KindStrategy, ResourceNeeds } from '../../handlers/strategy.ts'
import { namedBy } from '../node-checkpoint-data.ts'
import { planClaimRestore } from './claim-restore-plan.ts'
import { persistentVolumeStrategy } from './persistent-volume.ts'
import { persistentVolumeClaimStrategy } from './persistent-volume-claim.ts'

/** `pods`: those of the node that the store has. */
type ClaimDeliverer = { readonly node: string; readonly pods: readonly Pod[] }

type Create = (kind: KindStrategy, object: AnyObject) => Promise<void>

/** Another controller writes the same objects. */
const mostTries = 5
const mostNamed = 8

/** Why claims were not restored, or not as they were. `create`: stores an object if its name is free. */
export async function restoreClaims(
  delivered: readonly ProvenRecord[],
  { node, pods }: ClaimDeliverer,
  needs: ResourceNeeds,
  create: Create,
): Promise<readonly string[]> {
  const isNamed = namedBy(pods, (pod) => new Set(claimsOfPod(pod).map(({ name }) => name)))
  const notes: string[] = []
  const unproven: string[] = []
  for (const one of delivered) {
    const record = readClaimRecord(one.text)
    if (record === undefined || !isNamed(record.claim.metadata)) continue
    const { namespace, name } = record.claim.metadata
    if (needs.contentProver?.isProvenRecord(one) !== true) {
      unproven.push(`${namespace}/${name}`)
      continue
    }
    const note = await restoreClaim(record, node, needs, create)
    if (note === undefined) continue
    const message = `PersistentVolumeClaim ${namespace}/${name} of node ${node}: ${note}`
    notes.push(message)
    await report('ClaimNotLearnt', message, node, needs)
  }
  if (unproven.length > 0) await reportUnproven(unproven, node, needs)
  return notes
}

/** Returns what a person should see; undefined: it is as before. */
async function restoreClaim(
  record: ClaimRecord,
  node: string,
  needs: ResourceNeeds,
  create: Create,
): Promise<string | undefined> {
  for (let tries = 1; ; tries++) {
    try {
      return await tryRestore(record, node, needs, create)
    } catch (error) {
      // It was valid for the controller that sent it. The other claims come back.
      if (isApiError(error, 'Invalid')) return `not restored: ${error.message}`
      if (tries === mostTries || !isApiError(error, 'Conflict')) throw error
    }
  }
}

async function tryRestore({ claim, volume }: ClaimRecord, node: string, needs: ResourceNeeds, create: Create) {
  const { store, origin } = needs
  const { namespace = '', name = '' } = claim.metadata
  const present = await store.get('persistentvolumeclaims', { namespace, name })
  const plan = planClaimRestore({
    record: { claim, volume },
    claim: present,
    volume: await store.get('persistentvolumes', { namespace: '', name: volume.metadata.name ?? '' }),
    sinceMs: origin?.sinceMs,
  })
  if (plan.plan === 'nothing') return undefined
  if (plan.plan === 'refuse') return `not restored: ${plan.because}`
  if (plan.retain !== undefined) await retain(plan.retain, needs)
  if (plan.claim !== undefined) {
    const { step, object } = plan.claim
    if (step === 'replace' && present !== undefined) await removeIfThere(store, 'persistentvolumeclaims', present)
    if (step === 'write') await store.update('persistentvolumeclaims', learntFrom(object, node))
    else await create(persistentVolumeClaimStrategy, learntFrom(object, node))
  }
  if (plan.volume !== undefined) {
    const { step, object } = plan.volume
    if (step === 'write') await store.update('persistentvolumes', learntFrom(object, node))
    else await create(persistentVolumeStrategy, learntFrom(object, node))
  }
  return plan.note
}

async function retain(volume: string, needs: ResourceNeeds): Promise<void> {
  await rewrite(needs, 'persistentvolumes', {
    key: { namespace: '', name: volume },
    change: (one) => ({ ...one, spec: { ...one.spec, persistentVolumeReclaimPolicy: 'Retain' } }),
  })
}

function learntFrom<O extends AnyObject>(object: O, node: string): O {
  const annotations = { ...object.metadata.annotations, [learntFromAnnotation]: node }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

async function reportUnproven(claims: readonly string[], node: string, needs: ResourceNeeds): Promise<void> {
  const more = claims.length - mostNamed
  const named = `${claims.slice(0, mostNamed).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  const remedy = 'Create them and their volumes from your manifests: the data is still on the node'
  const message = `Node ${node} has not proven that a controller of this fleet sent it the claims ${named}: they were not restored. ${remedy}`
  await report('CheckpointNotProven', message, node, needs)
}

async function report(reason: string, message: string, node: string, needs: ResourceNeeds): Promise<void> {
  warnLimited(needs, node, 'Claims of a node checkpoint were not restored as they were', { node, because: message })
  const what = { type: 'Warning', reason, message, component: 'bramble-controller' } as const
  await needs.events.record({ object: nodeReference(node), ...what })
}
