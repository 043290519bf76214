/** The writes that have the chosen volumes bound: the claim in a volume, the selected node in a claim. Others then bind and provision. */
import { isReservedFor } from '../../../api/storage/volume-matching.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { type RewriteNeeds, rewrite } from '../../store/rewrite.ts'
import {
  boundVolume,
  type KnownClaim,
  type KnownVolume,
  type VolumeBinding,
  type VolumeChoice,
  withSelectedNode,
} from './volume-cache.ts'
import { isBindable } from './volume-candidates.ts'

/**
 * The versions as written, by uid. Throws when something was taken meanwhile: the pod needs another decision, and what is written stays, as
 * in Kubernetes, where it belongs to the claim from then on.
 */
export async function writeChoice(
  needs: RewriteNeeds,
  { bindings, provisions }: VolumeChoice,
  nodeName: string,
): Promise<ReadonlyMap<string, number>> {
  const versions = new Map<string, number>()
  const note = (written: KnownClaim | KnownVolume | undefined) => {
    if (written !== undefined) versions.set(written.metadata.uid, Number(written.metadata.resourceVersion))
  }
  for (const binding of bindings) note(await writeBinding(needs, binding))
  for (const claim of provisions) note(await writeSelectedNode(needs, claim, nodeName))
  return versions
}

function writeBinding(needs: RewriteNeeds, { claim, volume }: VolumeBinding): Promise<KnownVolume | undefined> {
  const { name, uid } = volume.metadata
  return rewrite(needs, 'persistentvolumes', {
    key: { namespace: '', name },
    uid,
    change(fresh) {
      if (isReservedFor(fresh, claim) && fresh.spec?.claimRef?.uid) return undefined
      if (isBindable(fresh, claim)) return boundVolume(fresh, claim)
      throw new Error(`persistentvolume "${name}" was changed and is no longer available for "${claim.metadata.name}"`)
    },
  })
}

function writeSelectedNode(
  needs: RewriteNeeds,
  { metadata }: KnownClaim,
  nodeName: string,
): Promise<KnownClaim | undefined> {
  const { namespace = '', name, uid } = metadata
  return rewrite(needs, 'persistentvolumeclaims', {
    key: { namespace, name },
    uid,
    change(fresh) {
      const selected = fresh.metadata.annotations?.[volumeAnnotations.selectedNode]
      if (selected === nodeName) return undefined
      if (selected === undefined && !fresh.spec?.volumeName) return withSelectedNode(fresh, nodeName)
      throw new Error(
        `persistentvolumeclaim "${name}" was changed and can no longer be provisioned on node "${nodeName}"`,
      )
    },
  })
}
