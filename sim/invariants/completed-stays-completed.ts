/** A container that has completed does not run again, where its pod does not restart it. */
import { type Invariant, withEntry } from './invariant.ts'

/** Where each container completed, by the uid of its pod and its name. */
type Completed = ReadonlyMap<string, string>

/** `ends`: of the names of pods whose containers are not restarted after exit code 0. */
export function completedStaysCompleted(ends: (pod: string) => boolean): Invariant<Completed> {
  return {
    name: 'a completed container does not run again',
    initial: new Map(),
    meets: (fact) => fact.kind === 'ended' && fact.exitCode === 0 && ends(fact.pod),
    next(completed, fact) {
      if (fact.kind === 'ended' && fact.exitCode === 0 && ends(fact.pod))
        return { state: withEntry(completed, `${fact.podUID}/${fact.container}`, fact.node) }
      if (fact.kind !== 'started') return { state: completed }
      const node = completed.get(`${fact.podUID}/${fact.container}`)
      if (node === undefined) return { state: completed }
      return {
        state: completed,
        violation: `${fact.container} of ${fact.pod} (${fact.podUID}) starts again on ${fact.node}`,
      }
    },
  }
}
