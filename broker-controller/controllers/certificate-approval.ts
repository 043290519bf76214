/** May this machine have the certificate it asks for, and when is its request history? */
import type { CertificateSigningRequest } from '../../api/certificate-signing-request.ts'
import { nodeClientSigner } from '../../api/certificate-signing-request.ts'
import { decode } from '../../api/decode.ts'
import {
  describeHardware,
  type HardwareIdentity,
  HardwareIdentitySchema,
  hardwareIdentityAnnotation,
  isCopiedCard,
  sameMachine,
} from '../../api/hardware-identity.ts'
import { bootstrappersGroup, lapsedNodeOf, nodeOf } from '../../api/identity.ts'
import type { Lease } from '../../api/lease.ts'
import type { KubeObject } from '../../api/meta.ts'
import type { Node } from '../../api/node.ts'
import { wrongDate } from '../../certs/authority.ts'
import { isReady } from './zones.ts'

/** What the request itself turned out to be. */
export type CheckedRequest =
  | { readonly ok: true; readonly nodeName: string }
  | { readonly ok: false; readonly reason: string }

/** What is known of the node the request is for. */
export type Claimed = {
  readonly node: Node | undefined
  readonly lease: Lease | undefined
  readonly nowMs: number
  readonly graceMs: number
  /** The machine that was given the name a moment ago, and is on its way to being that node. */
  readonly promisedTo: HardwareIdentity | undefined
  /** How long this controller has run: leases are in memory only, so it first has to hear who is there. */
  readonly sinceStartMs: number
  /** Nodes whose certificate has ended wait for an operator. */
  readonly quarantine: boolean
  /** What the node was issued before this was taken back; undefined: nothing was. */
  readonly revokedBeforeMs: number | undefined
}

export type CertificateStep =
  | { readonly step: 'approve' }
  | { readonly step: 'deny' | 'fail'; readonly reason: string; readonly message: string }
  | { readonly step: 'sign'; readonly nodeName: string }
  /** Nothing to do, or somebody else's to decide. */
  | { readonly step: 'none' }

/**
 * A machine with a bootstrap token, or a node that renews its own certificate, is answered; whoever else asks waits for
 * an operator. A name that another machine bears right now is refused.
 */
export function certificateStep(
  csr: CertificateSigningRequest,
  checked: CheckedRequest,
  claimed: Claimed,
): CertificateStep {
  if (csr.spec.signerName !== nodeClientSigner || csr.status?.certificate) return { step: 'none' }
  if (has(csr, 'Denied') || has(csr, 'Failed')) return { step: 'none' }
  if (isRevokedAhead(claimed)) {
    const message = revokedAhead(claimed)
    return { step: has(csr, 'Approved') ? 'fail' : 'deny', reason: 'RevokedAhead', message }
  }
  if (isOfRevoked(csr, claimed)) {
    const message = 'The certificate that this was asked for with was revoked since: join again with a token'
    return { step: has(csr, 'Approved') ? 'fail' : 'deny', reason: 'Revoked', message }
  }
  if (has(csr, 'Approved')) {
    return checked.ok
      ? { step: 'sign', nodeName: checked.nodeName }
      : { step: 'fail', reason: 'SignerValidationFailure', message: checked.reason }
  }
  if (!isAutomatic(csr)) return { step: 'none' }
  if (!checked.ok) return { step: 'deny', reason: 'InvalidRequest', message: checked.reason }
  if (isLapsed(csr)) return lapsedStep(csr, checked.nodeName, claimed)
  const theirs = claimed.node !== undefined && isLive(claimed) ? hardwareOf(claimed.node) : claimed.promisedTo
  if (theirs === undefined) return { step: 'approve' }
  const ours = hardwareOf(csr)
  if (sameMachine(ours, theirs)) return { step: 'approve' }
  return { step: 'deny', reason: 'NodeNameInUse', message: nameInUse(checked.nodeName, theirs, ours) }
}

/** As far as clocks may differ, and lists be written twice. */
const aheadMs = 5 * 60_000

/**
 * The clock was ahead when it was revoked: what is issued now would be good then only. One that cannot be right says
 * nothing of that, and nothing is signed until it is set.
 */
function isRevokedAhead({ revokedBeforeMs = 0, nowMs }: Claimed): boolean {
  return wrongDate(nowMs) === undefined && revokedBeforeMs - nowMs > aheadMs
}

function revokedAhead({ revokedBeforeMs = 0, nowMs }: Claimed): string {
  const [until, now] = [revokedBeforeMs, nowMs].map((ms) => new Date(ms).toISOString())
  return (
    `Certificates of this node are revoked until ${until}, and the controller's clock says ${now}: if that is right, correct the date ` +
    "with 'kubectl edit configmap -n kube-system bramble-revoked-certificates', then ask again"
  )
}

/** Who asks with a token is let in anew; a certificate that is revoked must not bring another one. */
function isOfRevoked(csr: CertificateSigningRequest, { revokedBeforeMs }: Claimed): boolean {
  if (revokedBeforeMs === undefined || expectedNodeName(csr) === undefined) return false
  return Date.parse(csr.metadata.creationTimestamp ?? '') <= revokedBeforeMs
}

/** It has shown the key of a certificate that was good once; it must also be the machine that the fleet knows by the name. */
function lapsedStep(csr: CertificateSigningRequest, name: string, { node, quarantine }: Claimed): CertificateStep {
  // Without a Node nobody knows which machine it was: an operator may.
  if (node === undefined || quarantine) return { step: 'none' }
  const [ours, theirs] = [hardwareOf(csr), hardwareOf(node)]
  if (sameMachine(ours, theirs)) return { step: 'approve' }
  const message =
    `the certificate of node ${name} has ended, and this machine (${describeHardware(ours)}) is not the one that is known ` +
    `by that name (${describeHardware(theirs)}): join again with a token`
  return { step: 'deny', reason: 'AnotherMachine', message }
}

function nameInUse(name: string, theirs: HardwareIdentity, ours: HardwareIdentity): string {
  return (
    `node name ${name} is in use by another machine that is live (${describeHardware(theirs)}); ` +
    `this machine is ${describeHardware(ours)}: give one of them another name${cloned(theirs, ours)}`
  )
}

function cloned(theirs: HardwareIdentity, ours: HardwareIdentity): string {
  return isCopiedCard(ours, theirs) ? `. Both have the same machine-id, ${copiedCard}` : ''
}

const copiedCard =
  'so one card is a copy of the other: ' +
  "on one of them run 'rm /etc/machine-id && systemd-machine-id-setup', and reboot"

/** What is to be said of a machine that is let in with the card of others; undefined: its card is its own. */
export function copyWarning(ours: HardwareIdentity, others: readonly KubeObject[]): string | undefined {
  const copies = others.filter((node) => isCopiedCard(ours, hardwareOf(node))).map(({ metadata }) => metadata.name)
  if (copies.length === 0) return undefined
  return `The machine-id is that of ${copies.slice(0, 5).join(', ')} too, ${copiedCard}`
}

/** The only node name the request may be for, when a node asks, or one whose certificate has ended. */
export function expectedNodeName({ spec }: CertificateSigningRequest): string | undefined {
  const requester = { user: spec.username ?? '', groups: spec.groups ?? [] }
  return nodeOf(requester) ?? lapsedNodeOf(requester)
}

function isLapsed({ spec }: CertificateSigningRequest): boolean {
  return lapsedNodeOf({ user: spec.username ?? '', groups: spec.groups ?? [] }) !== undefined
}

const hourMs = 3_600_000

/** Pending for a day, or decided an hour ago: as Kubernetes cleans up. */
export function isHistory(csr: CertificateSigningRequest, nowMs: number): boolean {
  const decided = csr.status?.conditions ?? []
  if (decided.length === 0) return nowMs - Date.parse(csr.metadata.creationTimestamp ?? '') > 24 * hourMs
  return decided.every(({ lastUpdateTime = '' }) => nowMs - Date.parse(lastUpdateTime) > hourMs)
}

/** The request with this answer added. */
export function answeredRequest<C extends CertificateSigningRequest>(
  csr: C,
  {
    type,
    reason,
    message,
  }: { readonly type: 'Approved' | 'Denied' | 'Failed'; readonly reason: string; readonly message: string },
  now: string,
): C {
  const condition = { type, status: 'True', reason, message, lastUpdateTime: now, lastTransitionTime: now }
  return { ...csr, status: { ...csr.status, conditions: [...(csr.status?.conditions ?? []), condition] } }
}

function has(csr: CertificateSigningRequest, type: string): boolean {
  return (csr.status?.conditions ?? []).some((condition) => condition.type === type)
}

function isAutomatic(csr: CertificateSigningRequest): boolean {
  return (csr.spec.groups ?? []).includes(bootstrappersGroup) || expectedNodeName(csr) !== undefined
}

/**
 * Ready, and its lease renewed within the grace, by the date of this controller, which wrote both. A node that was Ready
 * when the controller was started has a whole grace to be heard of.
 */
function isLive({ node, lease, nowMs, graceMs, sinceStartMs }: Claimed): boolean {
  if (node === undefined || !isReady(node)) return false
  const renewTime = lease?.spec?.renewTime
  return sinceStartMs <= graceMs || (renewTime !== undefined && nowMs - Date.parse(renewTime) <= graceMs)
}

/** Something unreadable identifies nothing. */
export function hardwareOf({ metadata }: KubeObject): HardwareIdentity {
  try {
    const decoded = decode(
      HardwareIdentitySchema,
      JSON.parse(metadata.annotations?.[hardwareIdentityAnnotation] ?? '{}'),
    )
    return decoded.ok ? decoded.value : {}
  } catch {
    return {}
  }
}
