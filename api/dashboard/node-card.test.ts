import { test } from 'tap'
import type { NodeCondition } from '../node.ts'
import { aNode } from '../testing/builders.ts'
import { nodeCard, whyNotReady } from './node-card.ts'

const facts = { pods: 3, renewed: '2026-01-01T00:00:30.000000Z' }
const silent: NodeCondition = {
  type: 'Ready',
  status: 'Unknown',
  reason: 'NodeStatusUnknown',
  message: 'Kubelet stopped posting node status.',
  lastTransitionTime: '2026-01-01T00:01:10Z',
}

function withConditions(...conditions: readonly NodeCondition[]) {
  const node = aNode({ name: 'pi-1', ready: 'True' })
  return { ...node, status: { ...node.status, conditions } }
}

test('a node that is ready has no reason and no last sign of life', async (t) => {
  const card = nodeCard(aNode({ name: 'pi-1', ready: 'True' }), facts)
  t.match(card, { name: 'pi-1', state: 'ready', pods: 3 })
  t.notOk('why' in card || 'seen' in card)
})

test('a silent node states since when, when it was seen last, and what it reported before', async (t) => {
  const card = nodeCard(withConditions(silent, { type: 'UnderVoltage', status: 'True' }), facts)
  t.match(card, { state: 'lost', since: 1767225670, seen: 1767225630, underVoltage: 'now' })
  t.equal(
    card.why,
    'The node stopped reporting: it has no power, no network, or its agent is stopped; before, it reported a supply voltage that is too low.',
  )
})

test('a node that was lost with its link names the link, until it is back', async (t) => {
  const annotations = { 'bramble.dev/suspected-link': 'attic' }
  const lost = withConditions(silent)
  const marked = { ...lost, metadata: { ...lost.metadata, annotations } }
  t.equal(nodeCard(marked, facts).lostLink, 'attic')
  t.notOk('lostLink' in nodeCard(aNode({ name: 'pi-1', ready: 'True', annotations }), facts))
  t.notOk('lostLink' in nodeCard(lost, facts))
})

test('a node that is not ready gives its own reason as one sentence', async (t) => {
  const ready = {
    type: 'Ready',
    status: 'False',
    reason: 'KubeletNotReady',
    message: 'docker does not answer',
  } as const
  t.match(nodeCard(withConditions(ready), facts), { state: 'not-ready', why: 'Docker does not answer.' })
  t.equal(whyNotReady([{ ...ready, message: 'two\nlines' }]), 'Two lines.')
  t.equal(nodeCard(withConditions({ ...ready, message: 'x'.repeat(5_000) }), facts).why?.length, 240)
})

test('a node that never reported is new', async (t) => {
  t.match(nodeCard(withConditions(), facts), { state: 'new', why: /has not reported yet/ })
  t.match(nodeCard(withConditions({ ...silent, reason: 'NodeStatusNeverUpdated' }), facts), { state: 'new' })
})

test('the card shows power since the boot, wear, a weak link and other problems', async (t) => {
  const card = nodeCard(
    withConditions(
      { type: 'Ready', status: 'True' },
      { type: 'UnderVoltage', status: 'False', reason: 'SupplyWasTooWeak' },
      { type: 'StorageWear', status: 'False', message: 'mmcblk0 has used up to 30 % of its life' },
      { type: 'WeakWifi', status: 'True', message: 'wlan0 has -85 dBm' },
      { type: 'MemoryPressure', status: 'False' },
    ),
    facts,
  )
  t.match(card, { state: 'ready', underVoltage: 'before', powerMeasured: true, wear: '30 %', link: 'weak' })
  t.same(card.problems, [{ type: 'WeakWifi', message: 'wlan0 has -85 dBm.' }])
})
