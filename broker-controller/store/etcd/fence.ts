/** What keeps a controller from writing that no longer owns the store. */
import type { Compare } from './etcd-messages.ts'

/** A condition of every write beside that on its object: it fails where another process has become the one that writes. */
export interface Fence {
  /** undefined: this process does not own the store now. */
  condition(): Compare | undefined
  /** A write failed, and its object was as expected: the condition may no longer hold. */
  failed(): void
}
