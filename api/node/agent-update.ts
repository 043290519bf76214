/**
 * The release of the agent that a node may run, and what became of it. The controller writes its decision on the Node; the node
 * receives the release in its `desired` message, and reports in an annotation of its own. What a release is worth is proven by the
 * signatures of its publisher, not by these.
 */
import { decode } from '../decode.ts'
import type { Node } from '../node.ts'
import { bool, type Described, integer, object, oneOf, optional, text } from '../schema.ts'
import { parseJson } from '../text/json.ts'

/** Set by the controller: an AgentAdmission as JSON. */
export const agentReleaseAnnotation = 'bramble.dev/agent-release'
/** Set by the agent: an AgentUpdateReport as JSON. An agent that cannot be updated in this way has none. */
export const agentUpdateAnnotation = 'bramble.dev/agent-update'

/** `sequence` identifies a release, and never falls. `digest`: SHA-256 of its release.json. */
export const AgentReleaseSchema = object({ version: text, sequence: integer, digest: text })
export type AgentRelease = Described<typeof AgentReleaseSchema>

/** What the controller keeps of a node. `outcome`: that which the node has reported of this release, and since when. */
const AgentAdmissionSchema = object({
  version: text,
  sequence: integer,
  digest: text,
  admittedAt: optional(text),
  outcome: optional(text),
  outcomeAt: optional(text),
  /** Releases that it took back one after the other, and when it did so last. */
  failures: optional(integer),
  failedAt: optional(text),
  /** It may not take the release any longer. */
  withdrawn: optional(bool),
})
export type AgentAdmission = Described<typeof AgentAdmissionSchema>

const AgentUpdateReportSchema = object({
  /** The version that is committed. */
  version: text,
  sequence: integer,
  /** The release that the node may run, or that it tries. */
  release: optional(
    object({
      version: text,
      sequence: integer,
      /** `blocked`: it cannot be installed before somebody changes something. */
      outcome: oneOf('waiting', 'trial', 'committed', 'rolledBack', 'blocked'),
      reason: optional(text),
      /** How much of it is downloaded, while it waits. */
      percent: optional(integer),
    }),
  ),
})
export type AgentUpdateReport = Described<typeof AgentUpdateReportSchema>

/** The release that the node may run; undefined: that which it has. */
export function wantedReleaseOf(node: Pick<Node, 'metadata'>): AgentRelease | undefined {
  const admission = admissionOf(node)
  if (admission === undefined || admission.withdrawn === true) return undefined
  const { version, sequence, digest } = admission
  return { version, sequence, digest }
}

/** Undefined: there is none, or it cannot be read. */
export function admissionOf({ metadata }: Pick<Node, 'metadata'>): AgentAdmission | undefined {
  const decoded = decode(AgentAdmissionSchema, parseJson(metadata.annotations?.[agentReleaseAnnotation] ?? ''))
  return decoded.ok && isRelease(decoded.value) ? decoded.value : undefined
}

/** Undefined: there is none, or it cannot be read. */
export function updateReportOf({ metadata }: Pick<Node, 'metadata'>): AgentUpdateReport | undefined {
  const decoded = decode(AgentUpdateReportSchema, parseJson(metadata.annotations?.[agentUpdateAnnotation] ?? ''))
  return decoded.ok && isSequence(decoded.value.sequence) ? decoded.value : undefined
}

/** Whether its fields can be those of a release. */
export function isRelease({ version, sequence, digest }: AgentRelease): boolean {
  const isVersion = /^[0-9A-Za-z][0-9A-Za-z.+~-]{0,63}$/.test(version)
  return isVersion && isSequence(sequence) && /^[0-9a-f]{64}$/.test(digest)
}

function isSequence(sequence: number): boolean {
  return Number.isSafeInteger(sequence) && sequence > 0
}
