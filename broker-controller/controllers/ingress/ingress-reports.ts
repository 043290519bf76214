/** Events on Ingresses: what is wrong with one is recorded when it begins, not with each change of another one. */
import type { EventRecorder } from '../../store/event-recorder.ts'
import { objectReference } from '../../store/references.ts'
import type { StoredObject } from '../../store/store.ts'
import type { IngressProblem } from './ingress-problem.ts'

type Stored = StoredObject<'ingresses'>

export interface IngressReports {
  /** `problems`: all that there are now. */
  report(problems: ReadonlyMap<Stored, readonly IngressProblem[]>): Promise<void>
}

/** Reports of one Ingress; the last one counts the rest. */
const mostOfIngress = 5

export function ingressReports({ events }: { readonly events: EventRecorder }): IngressReports {
  let reported = new Map<string, ReadonlySet<string>>()
  return {
    async report(problems) {
      const before = reported
      reported = new Map()
      const fresh: (() => Promise<void>)[] = []
      for (const [ingress, all] of problems) {
        const known = before.get(ingress.metadata.uid)
        const shown = shortened(all)
        reported.set(ingress.metadata.uid, new Set(shown.map(({ message }) => message)))
        for (const { reason, message } of shown) {
          if (known?.has(message)) continue
          const object = objectReference(ingress)
          fresh.push(() => events.record({ object, type: 'Warning', reason, message, component: 'ingress-controller' }))
        }
      }
      for (const record of fresh) await record()
    },
  }
}

function shortened(problems: readonly IngressProblem[]): readonly IngressProblem[] {
  const more = problems.length - mostOfIngress
  if (more <= 0) return problems
  return problems
    .slice(0, mostOfIngress)
    .map((one, index) => (index < mostOfIngress - 1 ? one : { ...one, message: `${one.message} (and ${more} more)` }))
}
