/** No program ends by itself. */
import type { Invariant } from './invariant.ts'

export const programsRun: Invariant<undefined> = {
  name: 'no program ends by itself',
  initial: undefined,
  next: (state, fact) =>
    fact.kind === 'crashed' ? { state, violation: `${fact.program}: ${fact.because}` } : { state },
}
