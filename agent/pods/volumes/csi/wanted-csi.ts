/** A volume that a CSI driver mounts, of a claim or inline in the pod → what its driver is asked for, or why it cannot be mounted. Pure. */
import { createHash } from 'node:crypto'
import type { Pod, Volume } from '../../../../api/pod.ts'
import type { Secret } from '../../../../api/secret.ts'
import type { NodeCsiDriver, NodeCsiVolume, NodeVolume } from '../../../../api/storage/node-claim.ts'
import { tokenAttributes } from '../driver-tokens.ts'
import { setUpFailed } from '../mount-step.ts'
import type { PodTokens } from '../token-needs.ts'
import type { ClaimVolume } from '../volume-store.ts'
import { type CsiGrowth, type CsiMount, csiSteps, getsGroup, podInfo } from './csi-mount.ts'

type Wanted = Required<Pick<ClaimVolume, 'csi'>> & Pick<ClaimVolume, 'group' | 'groupOnMismatch'>
/** `isQuiet`: the controller records the Events. */
type Failed = { readonly step: string; readonly message: string; readonly isQuiet?: true }
type Named = { readonly namespace: string; readonly name: string }

export type CsiFacts = {
  readonly volume: NodeVolume
  readonly csi: NodeCsiVolume
  readonly isReadOnly: boolean
  readonly secrets: readonly Secret[]
  readonly tokens?: PodTokens
  readonly isInline?: true
}

export type InlineSources = {
  readonly csiDrivers?: readonly NodeCsiDriver[]
  readonly secrets: readonly Secret[]
  /** undefined: this node requests none. */
  readonly tokens?: PodTokens
}

/** As a volume of a claim that no other pod has: it is published without a stage (SetUpAt in pkg/volume/csi/csi_mounter.go). */
export function inlineCsiMount(
  pod: Pod,
  { name, inline }: { readonly name: string; readonly inline: NonNullable<Volume['csi']> },
  { csiDrivers = [], secrets, tokens }: InlineSources,
): ClaimVolume | Failed {
  const { driver, fsType, volumeAttributes, nodePublishSecretRef, readOnly = false } = inline
  const { namespace = 'default', uid = '' } = pod.metadata
  const found = csiDrivers.find((one) => one.name === driver)
  const { name: _, modes = [], ...facts } = found ?? { name: '' }
  if (!modes.includes('Ephemeral')) {
    const only = modes.map((mode) => JSON.stringify(mode)).join(' ')
    const why = found === undefined ? 'no CSIDriver object' : `only supports [${only}]`
    const refused = `volume mode "Ephemeral" not supported by driver ${driver} (${why})`
    return {
      step: setUpFailed,
      message: `kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: ${refused}`,
    }
  }
  const csi: NodeCsiVolume = {
    ...{ driver, handle: inlineHandle(uid, name), accessModes: ['ReadWriteOnce'] },
    ...(fsType !== undefined && { fsType }),
    ...(volumeAttributes !== undefined && { attributes: volumeAttributes }),
    ...(nodePublishSecretRef?.name && { publishSecret: { namespace, name: nodePublishSecretRef.name } }),
    ...facts,
  }
  const volume: NodeVolume = { name, uid: `${uid}.${name}`, source: 'other' }
  const mount = csiMountOf(pod, {
    volume,
    csi,
    isReadOnly: readOnly,
    secrets,
    ...(tokens && { tokens }),
    isInline: true,
  })
  if ('message' in mount) return mount
  return {
    ...{ uid: volume.uid, volume: name, source: 'csi', path: '', type: '', claim: '', isForOnePod: false },
    ...mount,
  }
}

/** makeVolumeHandle in pkg/volume/csi. */
function inlineHandle(podUID: string, volume: string): string {
  return `csi-${createHash('sha256').update(`${podUID}${volume}`).digest('hex')}`
}

export function csiMountOf(
  pod: Pod,
  { volume, csi, isReadOnly, secrets, tokens, isInline }: CsiFacts,
): Wanted | Failed {
  const { driver, handle, fsType = '', attributes = {}, accessModes = [], publishContext = {} } = csi
  const isBlock = volume.volumeMode === 'Block'
  if (csi.notAttached !== undefined) return { step: csiSteps(isBlock).attach, message: csi.notAttached, isQuiet: true }
  const confidential = confidentialTexts(csi, csiSteps(isBlock), { secrets, ...(tokens && { tokens }) })
  if ('message' in confidential) return confidential
  const { fsGroup } = pod.spec.securityContext ?? {}
  const mount: CsiMount = {
    ...{ driver, handle, attributes, publishContext, fsType, readOnly: isReadOnly },
    ...(fsGroup !== undefined && { group: fsGroup }),
    ...(csi.attachable && { isAttachable: true }),
    ...(isBlock && { isBlock }),
    ...(isInline && { isInline }),
    ...(csi.republish && { republish: true }),
    ...(csi.size !== undefined && { growth: { ...growthOf(csi, secrets), size: csi.size } }),
    pod: `${pod.metadata.namespace}/${pod.metadata.name}`,
    accessMode: accessModes[0] ?? 'ReadWriteOnce',
    mountOptions: volume.mountOptions ?? [],
    podAttributes: { ...(csi.podInfo && podInfo(pod, isInline === true)), ...confidential.tokens },
    ...{ stageSecrets: confidential.stageSecrets, publishSecrets: confidential.publishSecrets },
  }
  return { csi: mount, ...(isReadOnly || isBlock ? {} : ownerOf(pod, csi)) }
}

type Texts = { readonly [key: string]: string }
type ConfidentialTexts = { readonly stageSecrets: Texts; readonly publishSecrets: Texts; readonly tokens: Texts }

function confidentialTexts(
  csi: NodeCsiVolume,
  steps: ReturnType<typeof csiSteps>,
  { secrets, tokens }: Pick<CsiFacts, 'secrets' | 'tokens'>,
): ConfidentialTexts | Failed {
  const stage = secretTexts('NodeStageSecretRef', csi.stageSecret, secrets)
  if ('missing' in stage) return { step: steps.stage, message: stage.missing }
  const publish = secretTexts('NodePublishSecretRef', csi.publishSecret, secrets)
  if ('missing' in publish) return { step: steps.publish, message: publish.missing }
  const accountTokens = tokenAttributes(csi.tokens, tokens)
  if ('missing' in accountTokens) {
    // Misspelt as in Kubernetes: people search for it.
    const failed = 'kubernetes.io/csi: mounter.SetUpAt failed to get service accoount token attributes'
    return { step: setUpFailed, message: `${failed}: ${accountTokens.missing}` }
  }
  return { stageSecrets: stage.texts, publishSecrets: publish.texts, tokens: accountTokens.texts }
}

/** The group that gets the files of a volume that the pod may write. */
function ownerOf({ spec }: Pod, csi: NodeCsiVolume): Pick<ClaimVolume, 'group' | 'groupOnMismatch'> {
  const { fsGroup: group, fsGroupChangePolicy } = spec.securityContext ?? {}
  if (group === undefined || !getsGroup(csi, csi.fsGroupPolicy)) return {}
  return { group, groupOnMismatch: fsGroupChangePolicy === 'OnRootMismatch' }
}

function growthOf(csi: NodeCsiVolume, secrets: readonly Secret[]): Pick<CsiGrowth, 'isAwaited' | 'secrets'> {
  return { isAwaited: csi.grows === true, secrets: secretTexts('NodeExpandSecretRef', csi.expandSecret, secrets) }
}

function secretTexts(
  field: string,
  reference: Named | undefined,
  secrets: readonly Secret[],
): { readonly texts: Texts } | { readonly missing: string } {
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
