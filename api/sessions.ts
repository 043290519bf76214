/**
 * Sessions: byte streams between clients of the API and containers of a node. The controller publishes the id of a session to
 * the node; the node connects to `sessionPath(id)` of the API with its certificate and the upgrade `sessionProtocol`. Both then
 * exchange frames: a byte for the channel, three for the length (big endian), the payload. See docs/mqtt.md.
 */
import { BackupRequestSchema } from './backups/backup-sessions.ts'
import { bool, type Described, integer, list, object, oneOf, optional, text } from './schema.ts'

export const sessionProtocol = 'bramble-session'

const pathPrefix = '/bramble/v1/sessions/'

export function sessionPath(id: string): string {
  return `${pathPrefix}${id}`
}

/** The id of a session in a path; undefined: the path is not that of a session. */
export function sessionOfPath(path: string): string | undefined {
  const id = path.startsWith(pathPrefix) ? path.slice(pathPrefix.length) : ''
  return /^[\w-]{1,64}$/.test(id) ? id : undefined
}

/** 0 to 4 carry what they do in Kubernetes' own protocol (v5.channel.k8s.io), 255 too: its payload is the channel that ends. */
export const sessionChannels = {
  input: 0,
  output: 1,
  errorOutput: 2,
  status: 3,
  resize: 4,
  request: 5,
  /** Sent by the node now and then, and dropped: it shows whether the controller has closed the session. */
  ping: 6,
  end: 255,
} as const

/**
 * Limits of one frame. A request holds the command line of an exec, which the API bounds with the headers of its
 * request.
 */
export const longestFrame = { data: 64 * 1024, request: 512 * 1024 } as const

/** Like core/v1 PodLogOptions, without what is for the controller. */
const LogRequestSchema = object({
  container: text,
  follow: optional(bool),
  previous: optional(bool),
  timestamps: optional(bool),
  tailLines: optional(integer),
  limitBytes: optional(integer),
  sinceSeconds: optional(integer),
  /** RFC 3339, with fractions of a second. */
  sinceTime: optional(text),
})
export type LogRequest = Described<typeof LogRequestSchema>

const AttachRequestSchema = object({
  container: text,
  stdin: bool,
  stdout: bool,
  stderr: bool,
  tty: bool,
})
export type AttachRequest = Described<typeof AttachRequestSchema>

const ExecRequestSchema = object({
  container: text,
  command: list(text),
  stdin: bool,
  stdout: bool,
  stderr: bool,
  tty: bool,
})
export type ExecRequest = Described<typeof ExecRequestSchema>

/** `send`: on the output channel; `receive`: on the input channel. `end` of the channel means that the copy is whole. */
const VolumeCopyRequestSchema = object({
  direction: oneOf('send', 'receive'),
  /** UID of the PersistentVolume. */
  uid: text,
  move: text,
  round: integer,
})
export type VolumeCopyRequest = Described<typeof VolumeCopyRequestSchema>

/**
 * The first frame of the controller: a pod of the node with what is wanted of it, one of the five below; or a connection to the
 * node itself. The uid is that of the static pod where the API holds its mirror.
 */
export const SessionRequestSchema = object({
  namespace: optional(text),
  pod: optional(text),
  uid: optional(text),
  /** HTTP/1.1 with the agent; with a port, with what listens there on the address of the node. */
  node: optional(object({ port: optional(integer) })),
  logs: optional(LogRequestSchema),
  exec: optional(ExecRequestSchema),
  attach: optional(AttachRequestSchema),
  portForward: optional(object({ port: integer })),
  /** A connection only by the address at which others reach the pod. A field of its own: an agent that has none refuses it. */
  proxy: optional(object({ port: integer })),
  /** A copy of a volume that is being moved, by the order of which the node has its part. */
  volume: optional(VolumeCopyRequestSchema),
  /** A part of a backup of a volume, or of its restoration. */
  backup: optional(BackupRequestSchema),
})
export type SessionRequest = Described<typeof SessionRequestSchema>

/**
 * `started`, or `refused`: the first frame of the node. `ended`: its last. `reason` is that of a Status of Kubernetes; without
 * one, and without an exit code, the session ended well.
 */
export const SessionStatusSchema = object({
  state: oneOf('started', 'refused', 'ended'),
  reason: optional(oneOf('BadRequest', 'NotFound', 'InternalError', 'ServiceUnavailable')),
  message: optional(text),
  exitCode: optional(integer),
})
export type SessionStatus = Described<typeof SessionStatusSchema>

/** The size of a terminal, as clients of Kubernetes write it. */
export const TerminalSizeSchema = object({ Width: integer, Height: integer })
