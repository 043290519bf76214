/** Decides whether a machine gets the certificate that it requests, and when an old request is removed. */

import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import { isVerdict, nodeClientSigner, waitingCondition } from '../../../api/certificate-signing-request.ts'
import { decode } from '../../../api/decode.ts'
import { bootstrappersGroup, type Identity, lapsedNodeOf, nodeOf, provenNodeKey } from '../../../api/identity.ts'
import type { Lease } from '../../../api/lease.ts'
import type { KubeObject } from '../../../api/meta.ts'
import {
  describeHardware,
  type HardwareIdentity,
  HardwareIdentitySchema,
  hardwareIdentityAnnotation,
  isCopiedCard,
  sameMachine,
} from '../../../api/node/hardware-identity.ts'
import type { Node } from '../../../api/node.ts'
import { parseJson } from '../../../api/text/json.ts'
import { wrongDate } from '../../../certs/authority.ts'
import { isReady } from '../node-lifecycle/zones.ts'

/** What the request itself turned out to be. */
export type CheckedRequest =
  /** `keyHash`: of the public key that the request is for; its signature proved that the asker holds the key. */
  | { readonly ok: true; readonly nodeName: string; readonly keyHash: string }
  | { readonly ok: false; readonly reason: string }

/** What is known of the node the request is for. */
export type Claimed = {
  readonly node: Node | undefined
  readonly lease: Lease | undefined
  readonly nowMs: number
  readonly graceMs: number
  /** `keyHash` of the request that this controller gave the name to a moment ago; undefined: to none. */
  readonly promisedTo: string | undefined
  /** How long this controller has run: leases are in memory only, so connected nodes appear only with their next heartbeat. */
  readonly sinceStartMs: number
  /** Nodes whose certificate has ended wait for an operator. */
  readonly quarantine: boolean
  /** The bootstrap token that the request was made with is deleted or expired: its holder cannot read an answer. */
  readonly tokenEnded: boolean
  /** Pods are bound to the name: those of a Node that was deleted are removed within a minute or so. */
  readonly hasPods: boolean
  /** The store may lack names that are taken: it still accepts checkpoints. */
  readonly acceptsCheckpoints: boolean
  /** What the node was issued before this was taken back; undefined: nothing was. */
  readonly revokedBeforeMs: number | undefined
}

export type CertificateStep =
  | { readonly step: 'approve' }
  | { readonly step: 'deny' | 'fail'; readonly reason: string; readonly message: string; readonly isNameTaken?: true }
  /** `replaces`: earlier certificates of the name are revoked, because the operator gave it to another key. */
  | { readonly step: 'sign'; readonly nodeName: string; readonly replaces: boolean }
  /** An operator must approve it. `message` is for the requester: it does not describe the machine that has the name. */
  | {
      readonly step: 'wait'
      readonly reason: string
      readonly message: string
      readonly isNameTaken?: true
      /** When to decide again without an operator. */
      readonly againMs?: number
    }
  /** Nothing to do, or somebody else's to decide. */
  | { readonly step: 'none' }

/**
 * A machine with a bootstrap token, or a node that renews its own certificate, is answered; every other asker waits for
 * an operator. A name that exists as a Node is given only to a proven key of that node, or by an operator: what the
 * asker claims of its hardware proves nothing.
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
    const message = 'The certificate that this was requested with was revoked since: join again with a token'
    return { step: has(csr, 'Approved') ? 'fail' : 'deny', reason: 'Revoked', message }
  }
  if (has(csr, 'Approved')) return approvedStep(csr, checked, claimed)
  if (!isAutomatic(csr)) return { step: 'none' }
  if (!checked.ok) return { step: 'deny', reason: 'InvalidRequest', message: checked.reason }
  if (lapsedNodeOf(requesterOf(csr)) !== undefined) return lapsedStep(claimed)
  return hasKey(csr, checked, claimed) ? { step: 'approve' } : tokenStep(checked.nodeName, claimed)
}

function approvedStep(csr: CertificateSigningRequest, checked: CheckedRequest, claimed: Claimed): CertificateStep {
  if (!checked.ok) return { step: 'fail', reason: 'SignerValidationFailure', message: checked.reason }
  return { step: 'sign', nodeName: checked.nodeName, replaces: isTakeover(csr, checked, claimed) }
}

type Checked = CheckedRequest & { readonly ok: true }

/**
 * Whether the requester has a key that this authority certified for the node. It connected with that certificate, or the
 * request is for the key that this controller gave the name to a moment ago.
 */
function hasKey(csr: CertificateSigningRequest, { nodeName, keyHash }: Checked, { promisedTo }: Claimed): boolean {
  const isProven = (csr.spec.extra?.[provenNodeKey] ?? []).includes(nodeName)
  return expectedNodeName(csr) === nodeName || isProven || promisedTo === keyHash
}

/** An operator gave the name of a node to a key that the node did not have. */
function isTakeover(csr: CertificateSigningRequest, checked: Checked, claimed: Claimed): boolean {
  return claimed.node !== undefined && isAutomatic(csr) && !hasKey(csr, checked, claimed)
}

/** A token alone gives a name that is free. */
function tokenStep(name: string, claimed: Claimed): CertificateStep {
  const { node, promisedTo, acceptsCheckpoints, hasPods, tokenEnded } = claimed
  if (tokenEnded) {
    const message = 'The bootstrap token of this request has expired or was deleted since: join again with another one'
    return { step: 'deny', reason: 'TokenEnded', message }
  }
  if (promisedTo !== undefined || isLive(claimed)) {
    const message = `node name ${name} is in use by another machine that is live: give one of them another name`
    return { step: 'deny', reason: 'NodeNameInUse', message, isNameTaken: true }
  }
  if (node !== undefined) {
    const message = `node ${name} exists, and this machine did not prove that it is that node`
    return { step: 'wait', reason: 'NodeExists', message, isNameTaken: true }
  }
  if (acceptsCheckpoints) {
    const message = `the controller was restored and does not have all its nodes yet; node ${name} may be one of them ('bramble-controller checkpoints status' shows until when)`
    return { step: 'wait', reason: 'AcceptsCheckpoints', message }
  }
  if (!hasPods) return { step: 'approve' }
  // It would get their Secrets.
  const message = `pods are still bound to the name ${name}; those of a deleted node are removed within two minutes, and the request is then approved automatically`
  return { step: 'wait', reason: 'PodsBound', message, againMs: podsBoundAgainMs }
}

const podsBoundAgainMs = 10_000

/** As far as clocks may differ, and lists be written twice. */
export const revokedAheadMs = 5 * 60_000

/**
 * The clock was ahead when it was revoked: what is issued now would be good then only. One that cannot be right states
 * nothing of that, and nothing is signed until it is set.
 */
function isRevokedAhead({ revokedBeforeMs = 0, nowMs }: Claimed): boolean {
  return wrongDate(nowMs) === undefined && revokedBeforeMs - nowMs > revokedAheadMs
}

function revokedAhead({ revokedBeforeMs = 0, nowMs }: Claimed): string {
  const [until, now] = [revokedBeforeMs, nowMs].map((ms) => new Date(ms).toISOString())
  return (
    `Certificates of this node are revoked until ${until}, and the controller's clock shows ${now}: if that is right, correct the date ` +
    "with 'kubectl edit configmap -n kube-system bramble-revoked-certificates', then ask again"
  )
}

/** A token admits a node again; a revoked certificate must not be used to get another one. */
function isOfRevoked(csr: CertificateSigningRequest, { revokedBeforeMs }: Claimed): boolean {
  if (revokedBeforeMs === undefined || expectedNodeName(csr) === undefined) return false
  return Date.parse(csr.metadata.creationTimestamp ?? '') <= revokedBeforeMs
}

/** It connected with the key of a certificate that was good once: that is the proof, whatever board the card is in now. */
function lapsedStep({ node, quarantine }: Claimed): CertificateStep {
  // Without a Node object only an operator can decide.
  return node === undefined || quarantine ? { step: 'none' } : { step: 'approve' }
}

/**
 * For the operator, when a machine asked for a name that exists: both machines as they describe themselves. The asker
 * must not read it.
 */
export function nameTakenWarning(name: string, csrName: string, node: Node | undefined, csr: KubeObject): string {
  const [theirs, ours] = [node === undefined ? {} : hardwareOf(node), hardwareOf(csr)]
  const approve = `if it is to be node ${name}, run 'kubectl delete node ${name}' before it joins, or 'kubectl certificate approve ${csrName}' while its request is pending`
  return (
    `A machine with a bootstrap token asked for the name ${name}, which a node has (${describeHardware(theirs)}). ` +
    `It claims, without proof: ${describeHardware(ours)}. Otherwise give it another name; ${approve}${cloned(theirs, ours)}`
  )
}

/** For the operator: the key is the node's, and the machine is not the one that had it before. Undefined: it is. */
export function movedWarning(csr: KubeObject, node: Node | undefined): string | undefined {
  if (node === undefined) return undefined
  const [theirs, ours] = [hardwareOf(node), hardwareOf(csr)]
  if (Object.keys(theirs).length === 0 || Object.keys(ours).length === 0 || sameMachine(ours, theirs)) return undefined
  return (
    `The key of node ${node.metadata.name} is used by another machine than before: ${describeHardware(ours)}, ` +
    `before ${describeHardware(theirs)}. If its card was not moved on purpose, it was copied: ` +
    `run 'bramble-controller certificates revoke ${node.metadata.name}' and let the right machine join again`
  )
}

function cloned(theirs: HardwareIdentity, ours: HardwareIdentity): string {
  return isCopiedCard(ours, theirs) ? `. Both have the same machine-id, ${copiedCard}` : ''
}

const copiedCard =
  'so one card is a copy of the other: ' +
  "on one of them run 'rm /etc/machine-id && systemd-machine-id-setup', and reboot"

/** The warning for an admitted machine whose identifiers belong to another node; undefined: they are unique. */
export function copyWarning(ours: HardwareIdentity, others: readonly KubeObject[]): string | undefined {
  const copies = others.filter((node) => isCopiedCard(ours, hardwareOf(node))).map(({ metadata }) => metadata.name)
  if (copies.length === 0) return undefined
  return `The machine-id is that of ${copies.slice(0, 5).join(', ')} too, ${copiedCard}`
}

/** The only node name the request may be for, when a node asks, or one whose certificate has ended. */
export function expectedNodeName(csr: CertificateSigningRequest): string | undefined {
  const requester = requesterOf(csr)
  return nodeOf(requester) ?? lapsedNodeOf(requester)
}

function requesterOf({ spec }: CertificateSigningRequest): Identity {
  return { user: spec.username ?? '', groups: spec.groups ?? [] }
}

const hourMs = 3_600_000

/** Pending for a day, or decided an hour ago: as Kubernetes cleans up. */
export function isHistory(csr: CertificateSigningRequest, nowMs: number): boolean {
  const decided = (csr.status?.conditions ?? []).filter(isVerdict)
  if (decided.length === 0) return nowMs - Date.parse(csr.metadata.creationTimestamp ?? '') > 24 * hourMs
  return decided.every(({ lastUpdateTime = '' }) => nowMs - Date.parse(lastUpdateTime) > hourMs)
}

/** The request with this answer added. A verdict ends the waiting. */
export function answeredRequest<C extends CertificateSigningRequest>(
  csr: C,
  {
    type,
    reason,
    message,
  }: {
    readonly type: 'Approved' | 'Denied' | 'Failed' | typeof waitingCondition
    readonly reason: string
    readonly message: string
  },
  now: string,
): C {
  const condition = { type, status: 'True', reason, message, lastUpdateTime: now, lastTransitionTime: now }
  const others = (csr.status?.conditions ?? []).filter((one) => one.type !== waitingCondition)
  return { ...csr, status: { ...csr.status, conditions: [...others, condition] } }
}

function has(csr: CertificateSigningRequest, type: string): boolean {
  return (csr.status?.conditions ?? []).some((condition) => condition.type === type)
}

function isAutomatic(csr: CertificateSigningRequest): boolean {
  return (csr.spec.groups ?? []).includes(bootstrappersGroup) || expectedNodeName(csr) !== undefined
}

/**
 * Ready, and its lease renewed within the grace, by the date of this controller, which wrote both. A node that was Ready
 * when the controller was started has a whole grace period to report.
 */
function isLive({ node, lease, nowMs, graceMs, sinceStartMs }: Claimed): boolean {
  if (node === undefined || !isReady(node)) return false
  const renewTime = lease?.spec?.renewTime
  return sinceStartMs <= graceMs || (renewTime !== undefined && nowMs - Date.parse(renewTime) <= graceMs)
}

/** Something unreadable identifies nothing. */
export function hardwareOf({ metadata }: KubeObject): HardwareIdentity {
  const decoded = decode(HardwareIdentitySchema, parseJson(metadata.annotations?.[hardwareIdentityAnnotation] ?? '{}'))
  return decoded.ok ? decoded.value : {}
}
