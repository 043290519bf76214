/** The volume of a claim that a CSI driver mounts → what its driver is asked for, or why it cannot be mounted. Pure. */
import type { Pod } from '../../../../api/pod.ts'
import type { Secret } from '../../../../api/secret.ts'
import type { NodeCsiVolume, NodeVolume } from '../../../../api/storage/node-claim.ts'
import { type ClaimVolume, setUpFailed } from '../volume-store.ts'
import { type CsiMount, getsGroup, podInfo } from './csi-mount.ts'

type Wanted = Required<Pick<ClaimVolume, 'csi'>> & Pick<ClaimVolume, 'group' | 'groupOnMismatch'>
/** `isQuiet`: the controller records the Events. */
type Failed = { readonly step: string; readonly message: string; readonly isQuiet?: true }
type Named = { readonly namespace: string; readonly name: string }

export type CsiFacts = {
  readonly volume: NodeVolume
  readonly csi: NodeCsiVolume
  readonly isReadOnly: boolean
  readonly secrets: readonly Secret[]
}

export function csiMountOf(pod: Pod, { volume, csi, isReadOnly, secrets }: CsiFacts): Wanted | Failed {
  const { driver, handle, fsType, attributes = {}, accessModes = [], fsGroupPolicy, publishContext = {} } = csi
  if (csi.notAttached !== undefined) {
    return { step: 'MountVolume.WaitForAttach failed', message: csi.notAttached, isQuiet: true }
  }
  const stageSecrets = secretTexts('NodeStageSecretRef', csi.stageSecret, secrets)
  if ('missing' in stageSecrets) return { step: 'MountVolume.MountDevice failed', message: stageSecrets.missing }
  const publishSecrets = secretTexts('NodePublishSecretRef', csi.publishSecret, secrets)
  if ('missing' in publishSecrets) return { step: setUpFailed, message: publishSecrets.missing }
  const { fsGroup, fsGroupChangePolicy } = pod.spec.securityContext ?? {}
  const isOwned =
    fsGroup !== undefined && !isReadOnly && getsGroup({ ...(fsType && { fsType }), accessModes }, fsGroupPolicy)
  const mount: CsiMount = {
    ...{ driver, handle, attributes, publishContext, fsType: fsType ?? '', readOnly: isReadOnly },
    ...(fsGroup !== undefined && { group: fsGroup }),
    ...(csi.attachable && { isAttachable: true }),
    accessMode: accessModes[0] ?? 'ReadWriteOnce',
    mountOptions: volume.mountOptions ?? [],
    podAttributes: csi.podInfo ? podInfo(pod, false) : {},
    ...{ stageSecrets: stageSecrets.texts, publishSecrets: publishSecrets.texts },
  }
  return { csi: mount, ...(isOwned && { group: fsGroup, groupOnMismatch: fsGroupChangePolicy === 'OnRootMismatch' }) }
}

function secretTexts(
  field: string,
  reference: Named | undefined,
  secrets: readonly Secret[],
): { readonly texts: { readonly [key: string]: string } } | { readonly missing: string } {
  if (reference === undefined) return { texts: {} }
  const { namespace, name } = reference
  const found = secrets.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace)
  if (found === undefined) {
    return { missing: `fetching ${field} ${namespace}/${name} failed: secrets "${name}" not found` }
  }
  const texts = Object.entries(found.data ?? {}).map(([key, data]) => [
    key,
    Buffer.from(data, 'base64').toString('utf8'),
  ])
  return { texts: Object.fromEntries(texts) }
}
