/** A Node → what a rollout decides by, and what is kept on it of its updates. */

import {
  type AgentAdmission,
  type AgentUpdateReport,
  admissionOf,
  agentReleaseAnnotation,
  updateReportOf,
} from '../../../api/node/agent-update.ts'
import { goodbyeReasonAnnotation } from '../../../api/node/lifecycle-annotations.ts'
import type { Node } from '../../../api/node.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { internalAddressesOf, linkAndZoneOf } from './node-places.ts'
import { type FleetRelease, penaltyUntilMs, type RolloutNode, type UpdateOutcome } from './rollout-facts.ts'
import type { RolloutRules } from './rollout-rules.ts'

const outcomes: readonly string[] = ['waiting', 'trial', 'committed', 'rolledBack', 'blocked'] satisfies UpdateOutcome[]

type Written = { readonly admission: AgentAdmission | undefined; readonly report: AgentUpdateReport | undefined }
const read = new WeakMap<Node, Written>()

/** The annotations of a Node, decoded. Objects of the store are never changed in place: each is read once. */
export function writtenOn(node: Node): Written {
  const written = read.get(node) ?? { admission: admissionOf(node), report: updateReportOf(node) }
  read.set(node, written)
  return written
}

/** `controllerAddresses`: where controllers run. */
export function rolloutNode(node: Node, rules: RolloutRules, controllerAddresses: ReadonlySet<string>): RolloutNode {
  const { name = '', labels = {}, annotations } = node.metadata
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
  const isConnected = ready !== undefined && ready.status !== 'Unknown'
  const isLost = ready?.status === 'Unknown' && annotations?.[goodbyeReasonAnnotation] === undefined
  const { admission, report } = writtenOn(node)
  const { failures = 0, failedAt } = admission ?? {}
  return {
    name,
    labels,
    isConnected,
    ...linkAndZoneOf(node),
    sequence: report?.sequence,
    lostSinceMs: isLost ? timeOf(ready?.lastTransitionTime) : undefined,
    isController: internalAddressesOf(node.status).some((one) => controllerAddresses.has(one)),
    penaltyUntilMs: penaltyUntilMs({ failures, failedMs: timeOf(failedAt) ?? 0 }, rules),
    admitted: admitted(admission),
    report: reported(admission),
  }
}

function admitted(admission: AgentAdmission | undefined): RolloutNode['admitted'] {
  if (admission === undefined || admission.withdrawn === true) return undefined
  const { digest, sequence, admittedAt } = admission
  return { digest, sequence, atMs: timeOf(admittedAt) ?? 0 }
}

function reported(admission: AgentAdmission | undefined): RolloutNode['report'] {
  const { digest, outcome, outcomeAt } = admission ?? {}
  if (digest === undefined || !isOutcome(outcome)) return undefined
  return { digest, outcome, atMs: timeOf(outcomeAt) ?? 0 }
}

function isOutcome(outcome: string | undefined): outcome is UpdateOutcome {
  return outcome !== undefined && outcomes.includes(outcome)
}

/** The node with what it now reports of its release; undefined: that is kept already. */
export function withReport<N extends Node>(node: N, nowMs: number): N | undefined {
  const { admission, report } = writtenOn(node)
  const release = report?.release
  if (admission === undefined || release === undefined || release.sequence !== admission.sequence) return undefined
  const { outcome } = release
  if (outcome === admission.outcome) return undefined
  const now = rfc3339(nowMs)
  const { failures = 0, failedAt: _, ...others } = admission
  const failing = outcome === 'rolledBack' ? { failures: failures + 1, failedAt: now } : kept(admission, outcome)
  return withAdmission(node, { ...withoutFailures(others), ...failing, outcome, outcomeAt: now })
}

/** A committed release ends the row of failures. */
function kept({ failures, failedAt }: AgentAdmission, outcome: UpdateOutcome): Partial<AgentAdmission> {
  if (outcome === 'committed') return {}
  return { ...(failures !== undefined && { failures }), ...(failedAt !== undefined && { failedAt }) }
}

function withoutFailures({ failures: _, ...others }: Omit<AgentAdmission, 'failedAt'>): AgentAdmission {
  return others
}

/** The node that may take this release from now on. */
export function withRelease<N extends Node>(node: N, { version, sequence, digest }: FleetRelease, nowMs: number): N {
  const before = admissionOf(node)
  const failed = before === undefined ? {} : kept(before, 'waiting')
  return withAdmission(node, { version, sequence, digest, admittedAt: rfc3339(nowMs), ...failed })
}

/** The node that may not take its release any longer; undefined: it may not already. */
export function withoutRelease<N extends Node>(node: N): N | undefined {
  const admission = admissionOf(node)
  return admission === undefined || admission.withdrawn === true
    ? undefined
    : withAdmission(node, { ...admission, withdrawn: true })
}

function withAdmission<N extends Node>(node: N, admission: AgentAdmission): N {
  const annotations = { ...node.metadata.annotations, [agentReleaseAnnotation]: JSON.stringify(admission) }
  return { ...node, metadata: { ...node.metadata, annotations } }
}

function timeOf(written: string | undefined): number | undefined {
  const ms = Date.parse(written ?? '')
  return Number.isFinite(ms) ? ms : undefined
}
