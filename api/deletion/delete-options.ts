/** meta/v1 DeleteOptions, in a body or inside an Eviction. */
import { bool, type Described, field, integer, list, object, oneOf, optional, pointer, text } from '../schema.ts'

export const DeleteOptionsSchema = object({
  apiVersion: optional(text),
  kind: optional(text),
  /** 0: at once; a negative one is a second. */
  gracePeriodSeconds: pointer(1, optional(integer)),
  propagationPolicy: pointer(4, optional(oneOf('Background', 'Foreground', 'Orphan'))),
  /** Deprecated form of Orphan (true) and Background (false). */
  orphanDependents: pointer(3, optional(bool)),
  preconditions: field(
    2,
    optional(object({ uid: pointer(1, optional(text)), resourceVersion: pointer(2, optional(text)) })),
  ),
  /** `All`, or nothing: judged with the query's. */
  dryRun: field(5, optional(list(text))),
  ignoreStoreReadErrorWithClusterBreakingPotential: pointer(6, optional(bool)),
})
export type DeleteOptions = Described<typeof DeleteOptionsSchema>
