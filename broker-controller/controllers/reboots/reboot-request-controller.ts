/** Loop: requests to restart machines. It decides on each, writes what became of it on the Node, and records Events. */
import { rebootRequestedAnnotation, rebootStatusAnnotation } from '../../../api/node/reboot-annotations.ts'
import type { Node } from '../../../api/node.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { informer } from '../../store/informer.ts'
import { nodeReference } from '../../store/references.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store } from '../../store/store.ts'
import { type RebootEvent, type RebootStep, rebootStep, withRebootStatus } from './reboot-request.ts'

export type RebootRequestNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}

/** The node outbox publishes a request that is pending; this loop never sends anything itself. */
export function rebootRequestController(needs: RebootRequestNeeds): Loop {
  return { name: 'reboot-requests', run: (signal) => runRequests(needs, signal) }
}

async function runRequests({ store, events, clock, log }: RebootRequestNeeds, signal: AbortSignal): Promise<void> {
  const queue = workQueue(clock)
  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    if (present === undefined || present.metadata.annotations?.[rebootRequestedAnnotation] === undefined) return
    if (previous === undefined || factsOf(present) !== factsOf(previous)) queue.add(present.metadata.name)
  })

  const record = async (node: string, event: RebootEvent) => {
    log.info('Request to reboot a node', { node, reason: event.reason, why: event.message })
    try {
      await events.record({ object: nodeReference(node), ...event, component: 'reboot-controller' })
    } catch (error) {
      log.warn('Event not recorded', { reason: event.reason, object: node, error })
    }
  }

  const reconcile = async (name: string): Promise<Reconciled> => {
    const { uid } = nodes.get({ namespace: '', name })?.metadata ?? {}
    if (uid === undefined) return undefined
    // Decided on the newest object, and again after a conflict.
    const decided: { last: RebootStep } = { last: { step: 'none' } }
    const written = await rewrite({ store, clock }, 'nodes', {
      key: { namespace: '', name },
      uid,
      change(node) {
        const step = rebootStep(node, clock.wallMs())
        decided.last = step
        return step.step === 'write' ? withRebootStatus(node, step.status) : undefined
      },
    })
    const { last } = decided
    if (last.step === 'write' && written !== undefined) await record(name, last.event)
    return last.step === 'wait' ? { requeueAfterMs: Math.max(0, last.untilMs - clock.wallMs()) } : undefined
  }

  const work = async () => {
    await nodes.listed
    if (!signal.aborted) await runController({ name: 'reboot-requests', reconcile }, queue, log, signal)
  }

  const loops = [
    { name: 'nodes', run: nodes.run },
    { name: 'work', run: work },
  ]
  await runLoops(loops, signal, log)
}

/** All that the decision depends on, except the time and whether the agent allows it, which counts only for a new request. */
function factsOf({ metadata, status }: Node): string {
  const { [rebootRequestedAnnotation]: asked, [rebootStatusAnnotation]: answered } = metadata.annotations ?? {}
  return JSON.stringify([asked, answered, status?.nodeInfo?.bootID])
}
