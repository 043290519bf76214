import { test } from 'tap'
import type { NodeStatus } from '../../../api/node.ts'
import { isUnchangedStatus, lastReport, nodeStatusAfter } from './node-status-report.ts'

const nowMs = Date.parse('2026-01-01T00:10:00.500Z')
const now = '2026-01-01T00:10:00Z'

test('heartbeat times are the controller’s, and transition times change with the status', async (t) => {
  const before: NodeStatus = {
    conditions: [
      { type: 'NetworkUnavailable', status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' },
      { type: 'MemoryPressure', status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' },
      { type: 'Ready', status: 'Unknown', lastTransitionTime: '2026-01-01T00:05:00Z' },
    ],
  }
  const report: NodeStatus = {
    capacity: { pods: '110' },
    conditions: [
      { type: 'MemoryPressure', status: 'False', lastTransitionTime: '1970-01-01T00:00:07Z', reason: 'r' },
      { type: 'Ready', status: 'True', lastHeartbeatTime: '1970-01-01T00:00:07Z' },
    ],
  }
  t.same(nodeStatusAfter(before, report, nowMs), {
    capacity: { pods: '110' },
    conditions: [
      before.conditions?.[0],
      {
        type: 'MemoryPressure',
        status: 'False',
        reason: 'r',
        lastHeartbeatTime: now,
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
      { type: 'Ready', status: 'True', lastHeartbeatTime: now, lastTransitionTime: now },
    ],
  })
})

test('a report of a node replaces the one before; conditions that others wrote stay, in bounded number', async (t) => {
  const made = (letter: string, count: number): NodeStatus => ({
    conditions: [
      ...Array.from({ length: count }, (_, i) => ({ type: `${letter}${i}`, status: 'True' }) as const),
      { type: 'Ready', status: 'True' },
    ],
  })
  const foreign = Array.from({ length: 100 }, (_, i) => ({ type: `Foreign${i}`, status: 'True' }) as const)
  const first = nodeStatusAfter({ conditions: foreign }, made('A', 50), nowMs)
  t.equal(first.conditions?.length, 32 + 51)
  const second = nodeStatusAfter(first, made('B', 50), nowMs + 1000)
  t.equal(second.conditions?.length, 32 + 51)
  t.notOk(second.conditions?.some(({ type }) => type.startsWith('A')))
  const third = nodeStatusAfter(second, { conditions: [{ type: 'Ready', status: 'True' }] }, nowMs + 2000)
  t.same(
    third.conditions?.map(({ type }) => type),
    [...foreign.slice(0, 32).map(({ type }) => type), 'Ready'],
  )
})

test('extended resources that others added stay, all of them allocatable; devices are those of the report', async (t) => {
  const before: NodeStatus = {
    capacity: { cpu: '4', 'example.com/gpu': '5', 'bramble.dev/camera': '1', 'kubernetes.io/x': '1', old: '1' },
    allocatable: { cpu: '4', 'example.com/gpu': '2', 'example.com/only-here': '1' },
  }
  const report: NodeStatus = { capacity: { cpu: '2' }, allocatable: { cpu: '1' }, conditions: [] }
  const first = nodeStatusAfter(before, report, nowMs)
  t.same(first, {
    capacity: { cpu: '2', 'example.com/gpu': '5' },
    allocatable: { cpu: '1', 'example.com/gpu': '5' },
    conditions: [],
  })
  const own = { ...report, capacity: { cpu: '2', 'example.com/gpu': '3' }, allocatable: { 'example.com/gpu': '1' } }
  t.same(nodeStatusAfter(first, own, nowMs), { ...own, conditions: [] }, 'what the node reports itself is its own')
  t.same(nodeStatusAfter({ capacity: { cpu: '4' } }, { conditions: [] }, nowMs), { conditions: [] })
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`example.com/r${i}`, '1']))
  t.equal(Object.keys(nodeStatusAfter({ capacity: many }, report, nowMs).capacity ?? {}).length, 1 + 64)
  t.equal(isUnchangedStatus(first, nodeStatusAfter(first, report, nowMs), nowMs), true)
})

test('a health condition that a machine no longer has is removed', async (t) => {
  const status: NodeStatus = { conditions: [{ type: 'UnderVoltage', status: 'True' }] }
  const after = nodeStatusAfter(status, { conditions: [{ type: 'Ready', status: 'True' }] }, nowMs)
  t.same(
    after.conditions?.map(({ type }) => type),
    ['Ready'],
  )
})

test('a status that is reported again is unchanged, until its heartbeat times are old or something differs', async (t) => {
  const report: NodeStatus = {
    capacity: { cpu: '4' },
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }],
    images: [{ names: ['a'], sizeBytes: 1 }],
  }
  const before = nodeStatusAfter(undefined, report, nowMs)
  const again = (changed: NodeStatus, laterMs: number) =>
    isUnchangedStatus(before, nodeStatusAfter(before, changed, nowMs + laterMs), nowMs + laterMs)
  t.equal(again(report, 1_000), true)
  t.equal(again(report, 239_000), true)
  t.equal(again(report, 241_000), false)
  t.equal(again(report, -10_000), false, 'the controller’s date was set back')
  t.equal(again({ ...report, images: [{ names: ['b'], sizeBytes: 1 }] }, 1_000), false)
  t.equal(again({ ...report, conditions: [{ type: 'Ready', status: 'False', reason: 'KubeletReady' }] }, 1_000), false)
  t.equal(again({ ...report, conditions: [{ type: 'Ready', status: 'True', reason: 'Other' }] }, 1_000), false)
  t.equal(isUnchangedStatus(undefined, before, nowMs), false)
})

test('the last report of a node is what was stamped together with its Ready condition', async (t) => {
  const at = (type: string, status: 'True' | 'Unknown', lastHeartbeatTime?: string) =>
    ({ type, status, ...(lastHeartbeatTime && { lastHeartbeatTime }) }) as const
  const own = [at('MemoryPressure', 'True', now), at('Ready', 'True', now)]
  const foreign = [at('NetworkUnavailable', 'True', '2026-01-01T00:00:00Z'), at('KernelDeadlock', 'True')]
  t.same(lastReport({ capacity: { pods: '110' }, conditions: [...foreign, ...own] }), {
    capacity: { pods: '110' },
    conditions: own,
  })
  t.equal(lastReport({ conditions: [at('MemoryPressure', 'True', now), at('Ready', 'Unknown', now)] }), undefined)
  for (const status of [undefined, {}, { conditions: foreign }]) t.equal(lastReport(status), undefined)
})

test('each condition is compared with the earlier one of its type', async (t) => {
  const at = '2026-01-01T00:00:00Z'
  const before: NodeStatus = {
    conditions: [
      { type: 'MemoryPressure', status: 'True', lastTransitionTime: at },
      { type: 'Ready', status: 'False', lastTransitionTime: at },
    ],
  }
  const after = nodeStatusAfter(before, { conditions: [{ type: 'Ready', status: 'False' }] }, nowMs)
  t.same(after.conditions, [{ type: 'Ready', status: 'False', lastHeartbeatTime: now, lastTransitionTime: at }])
})

test('a condition that the node no longer reports is removed, one that another client wrote stays', async (t) => {
  const foreign = { type: 'Foreign', status: 'True', lastHeartbeatTime: '2025-12-31T00:00:00Z' } as const
  const report = (...types: readonly string[]): NodeStatus => ({
    conditions: types.map((type) => ({ type, status: 'True' })),
  })
  const types = ({ conditions }: NodeStatus) => conditions?.map(({ type }) => type)
  t.same(types(nodeStatusAfter({ conditions: [foreign] }, report('A'), nowMs)), ['Foreign', 'A'])
  const first = nodeStatusAfter({ conditions: [foreign] }, report('A', 'B', 'Ready'), nowMs)
  const second = nodeStatusAfter(first, report('B', 'Ready'), nowMs + 1000)
  t.same(types(second), ['Foreign', 'B', 'Ready'])
  const { lastHeartbeatTime: _, ...unstamped } = foreign
  t.same(
    types(nodeStatusAfter({ conditions: [unstamped] }, report('Foreign'), nowMs)),
    ['Foreign'],
    'it is its own now',
  )
})

test('conditions of others do not age a status, and one that is gone changes it', async (t) => {
  const foreign = { type: 'Foreign', status: 'True' } as const
  const report: NodeStatus = { conditions: [{ type: 'Ready', status: 'True' }] }
  const before = nodeStatusAfter({ conditions: [foreign] }, report, nowMs)
  const again = (laterMs: number) =>
    isUnchangedStatus(before, nodeStatusAfter(before, report, nowMs + laterMs), nowMs + laterMs)
  t.same([again(1_000), again(-500), again(239_499), again(239_500)], [true, true, true, false])
  t.equal(isUnchangedStatus(before, { ...before, conditions: before.conditions?.slice(0, 1) ?? [] }, nowMs), false)
})

test('volumes stay in use until the node reports that they are not, and where they are attached is not its report', async (t) => {
  const before: NodeStatus = {
    volumesInUse: ['kubernetes.io/csi/d^h'],
    volumesAttached: [{ name: 'v', devicePath: '' }],
  }
  const after = (report: NodeStatus) => {
    const { conditions: _, ...rest } = nodeStatusAfter(before, report, nowMs)
    return rest
  }
  t.same(after({}), before, 'an agent that has started has not read them yet')
  t.same(after({ volumesInUse: ['kubernetes.io/csi/d^i'] }), { ...before, volumesInUse: ['kubernetes.io/csi/d^i'] })
  t.same(after({ volumesInUse: [], volumesAttached: [] }), { volumesAttached: before.volumesAttached })
  t.same(nodeStatusAfter(undefined, { volumesInUse: [] }, nowMs), { conditions: [] })
})
