/** What a condition of most kinds of workloads has; each kind has a type of its own for it. */
import { field, oneOf, optional, text, time } from '../schema.ts'

export const conditionFields = {
  type: field(1, text),
  status: field(2, oneOf('True', 'False', 'Unknown')),
  lastTransitionTime: field(3, optional(time)),
  reason: field(4, optional(text)),
  message: field(5, optional(text)),
}
