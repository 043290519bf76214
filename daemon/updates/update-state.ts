/**
 * The state of the updates of a program: the committed version, the version on trial, what was rejected. It is a file with a
 * checksum, and a copy of it in case the card damages it. Without the file the version of the package runs.
 */
import { decode } from '../../api/decode.ts'
import { bool, type Described, integer, list, object, optional, text } from '../../api/schema.ts'
import { parseJson } from '../../api/text/json.ts'
import { checkedContent, withChecksum } from './checked-text.ts'

/** `sequence` never falls from one release to the next. `digest`: SHA-256 of the release's archive. */
const release = { version: text, sequence: integer, digest: text }
const ReleaseSchema = object(release)
const RejectedSchema = object({ version: text, digest: text, reason: text })
const UpdateStateSchema = object({
  format: integer,
  /** Highest of all versions that were ever committed, and of the package. */
  highestSequence: integer,
  committed: optional(ReleaseSchema),
  trial: optional(
    object({
      ...release,
      attemptsLeft: integer,
      /** Before it: whether the controller had a current lease of the node, and the containers that ran. */
      wasConnected: bool,
      containers: list(text),
      /** Identifies the boot and Docker's start: each ends all containers. */
      epoch: text,
      /** The names of the nodes that were connected; only if the program is the controller. */
      nodes: optional(list(text)),
    }),
  ),
  rejected: list(RejectedSchema),
  /** How the last trial ended. */
  last: optional(object({ version: text, outcome: text, reason: text })),
})

/** A version of a program. */
export type Release = Described<typeof ReleaseSchema>
/** What was seen of the machine before a trial: afterwards it must not be worse. */
export type SeenBefore = {
  readonly wasConnected: boolean
  readonly containers: readonly string[]
  readonly epoch: string
  /** The names of the nodes; only if the program is the controller. */
  readonly nodes?: readonly string[]
}
export type UpdateState = Described<typeof UpdateStateSchema>

export const updateFormat = 1
/** How often a version on trial is started before it is rejected. */
export const trialAttempts = 3
const mostRejected = 16

export const initialUpdateState: UpdateState = { format: updateFormat, highestSequence: 0, rejected: [] }

export function updateStateText(state: UpdateState): string {
  return withChecksum(state)
}

/** Throws if the file is damaged, or a later version of the program wrote it. */
export function readUpdateState(written: string): UpdateState {
  const decoded = decode(UpdateStateSchema, parseJson(checkedContent(written)))
  if (!decoded.ok || decoded.value.format !== updateFormat) throw new Error('Its format is that of another version')
  return decoded.value
}

/** The name of the folder of a version. Two releases never share a folder. */
export function folderOf({ version, digest }: Release): string {
  return `${version}-${digest.slice(0, 16)}`
}

/** The state in which this release is never tried again. */
export function withRejected(state: UpdateState, { version, digest }: Release, reason: string): UpdateState {
  const others = state.rejected.filter((one) => one.digest !== digest)
  return { ...state, rejected: [...others, { version, digest, reason }].slice(-mostRejected) }
}
