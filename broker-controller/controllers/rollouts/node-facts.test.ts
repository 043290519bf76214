import { test } from 'tap'
import { type AgentAdmission, admissionOf } from '../../../api/node/agent-update.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { rolloutNode, withoutRelease, withRelease, withReport } from './node-facts.ts'
import { usualRules } from './rollout-rules.ts'

const startMs = Date.parse('2026-01-01T00:00:00Z')
const digest = 'a'.repeat(64)
const admission: AgentAdmission = { version: '2.0.0', sequence: 20, digest, admittedAt: '2026-01-01T00:00:00Z' }

type Written = { readonly kept?: Partial<AgentAdmission>; readonly outcome?: string; readonly sequence?: number }

function aMember({ kept, outcome, sequence = 20 }: Written = {}) {
  const release = outcome !== undefined && { release: { version: '2.0.0', sequence, outcome } }
  return aNode({
    name: 'pi-1',
    annotations: {
      'bramble.dev/agent-update': JSON.stringify({ version: '1.0.0', sequence: 10, ...release }),
      ...(kept && { 'bramble.dev/agent-release': JSON.stringify({ ...admission, ...kept }) }),
    },
  })
}

const factsOf = (node: ReturnType<typeof aMember>) => rolloutNode(node, usualRules, new Set(['10.0.0.9']))

test('what is written on a Node is what a rollout decides by', async (t) => {
  const node = aMember({ kept: { outcome: 'trial', outcomeAt: '2026-01-01T00:10:00Z' }, outcome: 'trial' })
  t.match(factsOf(node), {
    ...{ name: 'pi-1', sequence: 10, isConnected: true, lostSinceMs: undefined, penaltyUntilMs: 0 },
    admitted: { digest, sequence: 20, atMs: startMs },
    report: { digest, outcome: 'trial', atMs: startMs + 600_000 },
  })
  t.match(factsOf(aNode({ name: 'pi-2' })), { sequence: undefined, admitted: undefined, report: undefined })
})

test('a node without a heartbeat is lost, unless it announced that it leaves', async (t) => {
  const silent = (annotations: { readonly [name: string]: string }) =>
    aNode({ name: 'pi-1', ready: 'Unknown', annotations })
  t.match(factsOf(silent({})), { isConnected: false, lostSinceMs: Number })
  t.match(factsOf(silent({ 'bramble.dev/goodbye-reason': 'reboot' })), { isConnected: false, lostSinceMs: undefined })
})

test('link and zone are labels; without one the link is that of the address', async (t) => {
  const labels = { 'bramble.dev/link': 'attic', 'topology.kubernetes.io/zone': 'north' }
  t.match(factsOf(aNode({ name: 'pi-1', labels })), { link: 'attic', zone: 'north' })
  t.match(factsOf(aNode({ name: 'pi-1' })), { zone: '' })
})

test('a new outcome is kept with its time, and no report twice or of another release', async (t) => {
  const node = withReport(aMember({ kept: {}, outcome: 'trial' }), startMs + 5_000)
  t.match(node && admissionOf(node), { outcome: 'trial', outcomeAt: '2026-01-01T00:00:05Z' })
  t.equal(node && withReport(node, startMs + 9_000), undefined)
  t.equal(withReport(aMember({ kept: {}, outcome: 'trial', sequence: 19 }), startMs), undefined)
  t.equal(withReport(aMember({ outcome: 'trial' }), startMs), undefined)
})

test('failures one after the other are counted until a release is committed', async (t) => {
  const failing = withReport(aMember({ kept: { failures: 1 }, outcome: 'rolledBack' }), startMs)
  t.match(failing && admissionOf(failing), { failures: 2, failedAt: '2026-01-01T00:00:00Z' })
  if (failing === undefined) return
  t.equal(factsOf(failing).penaltyUntilMs, startMs + 2 * 86_400_000)
  const next = withRelease(failing, { version: '2.1.0', sequence: 21, digest, floor: 1 }, startMs)
  t.match(admissionOf(next), { version: '2.1.0', failures: 2, outcome: undefined })
  const waiting = withReport(
    aMember({ kept: { failures: 2, failedAt: '2026-01-01T00:00:00Z' }, outcome: 'waiting' }),
    startMs,
  )
  t.match(waiting && admissionOf(waiting), { failures: 2 })
  const fine = withReport(
    aMember({ kept: { failures: 2, failedAt: '2026-01-01T00:00:00Z' }, outcome: 'committed' }),
    startMs,
  )
  t.same(fine && admissionOf(fine)?.failures, undefined)
})

test('a release that is withdrawn is not admitted, and its failures stay', async (t) => {
  const node = withoutRelease(aMember({ kept: { failures: 1, failedAt: '2026-01-01T00:00:00Z' } }))
  t.equal(node && factsOf(node).admitted, undefined)
  t.ok(node && factsOf(node).penaltyUntilMs > startMs)
  t.equal(node && withoutRelease(node), undefined)
  t.equal(withoutRelease(aNode({ name: 'pi-1' })), undefined)
})
