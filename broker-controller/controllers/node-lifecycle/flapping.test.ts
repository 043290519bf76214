import { test } from 'tap'
import type { Node, NodeCondition, Taint } from '../../../api/node.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { afterLoss, type Flapping, flappingFrom, settledAtMs, steady, withFlappingTaint } from './flapping.ts'

const settings = { flappingLosses: 3, flappingWindowMs: 600_000, flappingSettleTimeMs: 900_000 }
const off = { ...settings, flappingLosses: 0 }
const now = '2026-01-02T03:04:05Z'
const ours: Taint = { key: 'bramble.dev/flapping', effect: 'NoSchedule' }
const camera: Taint = { key: 'camera', effect: 'NoSchedule' }
/** An operator's: it evicts, which Bramble's never does. */
const operators: Taint = { key: 'bramble.dev/flapping', effect: 'NoExecute' }
const bare: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' } }

const afterLosses = (times: readonly number[], by = settings, before: Flapping = steady) =>
  times.reduce((flapping, ms) => afterLoss(flapping, ms, by), before)

test('a node that loses Ready three times within the window is flapping', async (t) => {
  const cases = [
    { losses: [0], isFlapping: false },
    { losses: [0, 1_000], isFlapping: false },
    { losses: [0, 1_000, 2_000], isFlapping: true },
    { losses: [0, 300_000, 599_999], isFlapping: true },
    { losses: [0, 300_000, 600_000], isFlapping: false },
    { losses: [0, 300_000, 600_000, 700_000], isFlapping: true },
  ]
  for (const { losses, isFlapping } of cases) t.equal(afterLosses(losses).isFlapping, isFlapping, losses.join())
})

test('losses outside the window are forgotten, and a flapping node stays one', async (t) => {
  t.same(afterLosses([0, 300_000, 900_001]), { lossesMs: [900_001], isFlapping: false })
  t.same(afterLosses([0, 1, 2, 9_000_000]), { lossesMs: [9_000_000], isFlapping: true })
})

test('no node is flapping where it is switched off', async (t) => {
  t.same(afterLosses([0, 1, 2, 3], off), { lossesMs: [], isFlapping: false })
  t.same(afterLosses([5], off, { lossesMs: [], isFlapping: true }), { lossesMs: [], isFlapping: false })
})

test('after a restart of the controller the taint shows who was flapping', async (t) => {
  const cases = [
    { node: bare, isFlapping: false },
    { node: aNode({ taints: [camera, operators] }), isFlapping: false },
    { node: aNode({ taints: [camera, ours] }), isFlapping: true },
  ]
  for (const { node, isFlapping } of cases) t.same(flappingFrom(node, settings), { lossesMs: [], isFlapping })
  t.same(flappingFrom(aNode({ taints: [ours] }), off), steady, 'switched off meanwhile')
})

test('a flapping node is trusted again when it has been Ready for the settle time', async (t) => {
  const flapping = { lossesMs: [], isFlapping: true }
  const ready = (status: NodeCondition['status']): NodeCondition => ({ type: 'Ready', status })
  t.equal(settledAtMs(flapping, ready('True'), 1_000, settings), 901_000)
  t.equal(settledAtMs(flapping, ready('False'), 1_000, settings), undefined)
  t.equal(settledAtMs(flapping, ready('Unknown'), 1_000, settings), undefined)
  t.equal(settledAtMs(flapping, undefined, 1_000, settings), undefined)
  t.equal(settledAtMs(steady, ready('True'), 1_000, settings), undefined)
})

test('the taint comes and goes alone, and only where it changes something', async (t) => {
  const timed = { ...ours, timeAdded: now }
  t.same(withFlappingTaint(bare, true, now)?.spec, { taints: [timed] })
  t.same(withFlappingTaint(aNode({ taints: [camera, operators], unschedulable: true }), true, now)?.spec, {
    taints: [camera, operators, timed],
    unschedulable: true,
  })
  t.same(withFlappingTaint(aNode({ taints: [camera, ours, operators] }), false, now)?.spec, {
    taints: [camera, operators],
  })
  t.same(withFlappingTaint(aNode({ taints: [ours] }), false, now)?.spec, {}, 'the last taint takes the list with it')
  t.equal(withFlappingTaint(aNode({ taints: [ours] }), true, now), undefined)
  t.equal(withFlappingTaint(aNode({ taints: [camera, operators] }), false, now), undefined)
  t.equal(withFlappingTaint(bare, false, now), undefined)
})
