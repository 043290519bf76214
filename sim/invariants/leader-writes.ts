/** Only the controller that leads by the store writes, whatever the others believe. */
import type { Invariant } from './invariant.ts'

export const leaderWrites: Invariant<undefined> = {
  name: 'only the leader writes',
  initial: undefined,
  meets: ({ kind }) => kind === 'wrote',
  next(state, fact) {
    if (fact.kind !== 'wrote' || fact.controller === fact.leader) return { state }
    const { resource, name, controller, leader = 'no controller' } = fact
    return { state, violation: `${controller} writes ${resource} ${name} while ${leader} leads` }
  },
}
