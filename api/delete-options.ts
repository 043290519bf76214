/** How something shall be deleted: meta/v1 DeleteOptions, in a body or inside an Eviction. */
import { bool, type Described, integer, list, object, oneOf, optional, text } from './schema.ts'

export const DeleteOptionsSchema = object({
  apiVersion: optional(text),
  kind: optional(text),
  /** 0: at once; a negative one is a second. */
  gracePeriodSeconds: optional(integer),
  propagationPolicy: optional(oneOf('Background', 'Foreground', 'Orphan')),
  /** The older way to say Orphan (true) or Background (false). */
  orphanDependents: optional(bool),
  preconditions: optional(object({ uid: optional(text), resourceVersion: optional(text) })),
  /** `All`, or nothing: judged with the query's. */
  dryRun: optional(list(text)),
  ignoreStoreReadErrorWithClusterBreakingPotential: optional(bool),
})
export type DeleteOptions = Described<typeof DeleteOptionsSchema>
