/** What is in a namespace that is being deleted, after it was deleted as far as possible. */
import type { Resource } from '../../../api/resources.ts'

/** Objects of one kind that are still there: the finalizers of each. */
export type RemainingContent = {
  readonly kind: Pick<Resource, 'name' | 'group'>
  readonly finalizers: readonly (readonly string[])[]
}

export type NamespaceContent = {
  readonly remaining: readonly RemainingContent[]
  /** Why objects could not be deleted, one text for a kind. */
  readonly failures: readonly string[]
  /** Versions of extension servers that may have objects there, and do not answer: `wardle.example.com/v1`. */
  readonly undiscovered: readonly string[]
}
