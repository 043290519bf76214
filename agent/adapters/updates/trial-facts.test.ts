import { test } from 'tap'
import { isSeen, type NodeAtController } from './trial-facts.ts'

const nowMs = Date.parse('2026-01-01T00:10:00Z')
const nodeOf = (kubeletVersion: string) => ({ kind: 'Node', status: { nodeInfo: { kubeletVersion } } })
const leaseOf = (renewTime: string, leaseDurationSeconds?: number) => ({ spec: { renewTime, leaseDurationSeconds } })
const good: NodeAtController = {
  node: nodeOf('v1.32.4-bramble.1.5.0'),
  lease: leaseOf('2026-01-01T00:09:25.000000Z'),
  nowMs,
  version: '1.5.0',
}

const cases: { readonly [sentence: string]: readonly [Partial<NodeAtController>, boolean] } = {
  'a node with a current lease and the version is seen': [{}, true],
  'a lease that has ended is not current': [{ lease: leaseOf('2026-01-01T00:09:15.000000Z') }, false],
  'a longer lease is current for longer': [{ lease: leaseOf('2026-01-01T00:09:15.000000Z', 60) }, true],
  'another version is not seen': [{ node: nodeOf('v1.32.4-bramble.1.4.0') }, false],
  'a version that ends alike is not seen': [{ node: nodeOf('v1.32.4-bramble.11.5.0') }, false],
  'without a version the lease counts alone': [{ node: nodeOf('v1.32.4-bramble.1.4.0'), version: undefined }, true],
  'a node without a status is not seen': [{ node: { kind: 'Status', code: 404 } }, false],
  'a lease without a time is not current': [{ lease: { spec: {} } }, false],
  'an answer without a date proves nothing': [{ nowMs: Number.NaN }, false],
  'a text that is not JSON is not a node': [{ node: 'text' }, false],
}
for (const [sentence, [given, expected]] of Object.entries(cases)) {
  test(sentence, async (t) => {
    t.equal(isSeen({ ...good, ...given }), expected)
  })
}
