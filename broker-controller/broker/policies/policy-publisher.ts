/** Publishes the policies of nodes, and remembers what of each was published last. */
import { createHash } from 'node:crypto'
import { longestPoliciesMessage, type PoliciesMessage } from '../../../api/network/node-policies.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Reconciled } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Broker } from '../broker.ts'
import { type Published, publishWaitMs } from '../outbox/publish-pace.ts'
import type { NodePolicies } from './node-policies.ts'

export type PolicyPublisherNeeds = {
  readonly broker: Pick<Broker, 'publish' | 'withdraw'>
  readonly clock: Clock
  readonly log: Log
  /** New at each start of the controller. */
  readonly epoch: string
}

export interface PolicyPublisher {
  /** How long changes of the addresses of peers are collected from now on. */
  waitMs(node: string): number
  /** Publishes what `content` gives, unless that was published last; gives when to come again where the node needs a pause. */
  publish(node: string, nodeUID: string, content: () => Promise<NodePolicies>): Promise<Reconciled>
  /** The Node was deleted. */
  withdraw(node: string): Promise<undefined>
}

/** Characters of the lists of a message; its other fields take less than 1,024. */
export const mostPolicyText = longestPoliciesMessage - 1_024
/** As `desired`: a node gets a megabyte a second at the most. */
const bytesPerMs = 1_000

type PublishedPolicies = Published & {
  readonly nodeUID: string
  readonly digest: string
  readonly leftOut: string
  readonly pausedUntilMs: number
}

export function policyPublisher({ broker, clock, log, epoch }: PolicyPublisherNeeds): PolicyPublisher {
  const published = new Map<string, PublishedPolicies>()
  const waits = new Map<string, number>()
  let version = 0

  const logLeftOut = (node: string, names: readonly string[]) => {
    const facts = { node, namespaces: names.length, first: names.slice(0, 5) }
    log.warn(
      'Policies do not fit into the message of a node: pods of their namespaces have no connections there',
      facts,
    )
  }

  return {
    waitMs(node) {
      const waitMs = publishWaitMs(published.get(node), clock.monotonicMs())
      waits.set(node, waitMs)
      return waitMs
    },
    async publish(node, nodeUID, content) {
      const last = published.get(node)
      const pauseMs = (last?.pausedUntilMs ?? 0) - clock.monotonicMs()
      if (pauseMs > 0) return { requeueAfterMs: pauseMs }
      const found = await content()
      const lists = listsOf(found)
      const digest = createHash('sha256').update(lists).digest('base64')
      if (last?.digest === digest && last.nodeUID === nodeUID) return undefined
      const leftOut = found.leftOut.join()
      if (leftOut !== '' && leftOut !== last?.leftOut) logLeftOut(node, found.leftOut)
      version += 1
      const head: Pick<PoliciesMessage, 'epoch' | 'version'> = { epoch, version }
      const body = `${JSON.stringify(head).slice(0, -1)},${lists}}`
      await broker.publish({ kind: 'policies', node }, body)
      const atMs = clock.monotonicMs()
      const pausedUntilMs = atMs + body.length / bytesPerMs
      published.set(node, { atMs, waitedMs: waits.get(node) ?? 0, nodeUID, digest, leftOut, pausedUntilMs })
      waits.delete(node)
      return undefined
    },
    async withdraw(node) {
      if (published.has(node)) await broker.withdraw({ kind: 'policies', node })
      published.delete(node)
      waits.delete(node)
    },
  }
}

/** The texts are JSON already: copied, not made again. */
function listsOf({ namespaces, sets, policies }: NodePolicies): string {
  return `"namespaces":${JSON.stringify(namespaces)},"sets":[${sets.join()}],"policies":[${policies.join()}]`
}
